"""What several projects use: reports, plots, scores and training.

A script puts the folder of the projects on its path and imports from here,

    sys.path.append(str(Path(__file__).parents[2]))
    from common.report import table

and its commands in project.yml name the files of this folder among their `deps`.
"""
