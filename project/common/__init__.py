"""What several projects use: reports, plots and scores.

A script puts the folder of the projects on its path, `sys.path.append(str(Path(__file__).parents[2]))`,
and imports from here; its commands in project.yml name the files of this folder among their `deps`.
"""
