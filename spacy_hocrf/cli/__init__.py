"""`python -m spacy hocrf …`: the commands.

spaCy's command line loads the entry points of the group `spacy_cli` (setup.cfg) and nothing else
does; importing this package adds the group `hocrf` to its app. What a command needs beyond its
options is imported when it runs.
"""

from spacy.cli._util import app
from typer import Typer

from spacy_hocrf.cli.annotate.command import annotate_cli
from spacy_hocrf.cli.auto.command import auto_cli
from spacy_hocrf.cli.calibrating import calibrate_cli
from spacy_hocrf.cli.compare import compare_cli
from spacy_hocrf.cli.convert.command import convert_cli
from spacy_hocrf.cli.cross_fit import cross_fit_cli
from spacy_hocrf.cli.debugging import debug_cli
from spacy_hocrf.cli.doubting import doubt_cli
from spacy_hocrf.cli.inspecting import inspect_cli
from spacy_hocrf.cli.plan.command import plan_cli
from spacy_hocrf.cli.showing import show_cli
from spacy_hocrf.cli.starting import config_cli
from spacy_hocrf.cli.tempering import temper_cli
from spacy_hocrf.cli.templating import templates_cli
from spacy_hocrf.cli.tune import tune_cli

__all__ = ["hocrf_cli"]

hocrf_cli = Typer(
    name="hocrf", help="Commands for high-order conditional random fields.", no_args_is_help=True
)
hocrf_cli.command("annotate")(annotate_cli)
hocrf_cli.command("auto")(auto_cli)
hocrf_cli.command("calibrate")(calibrate_cli)
hocrf_cli.command("compare")(compare_cli)
hocrf_cli.command("config")(config_cli)
hocrf_cli.command("convert")(convert_cli)
hocrf_cli.command("inspect")(inspect_cli)
hocrf_cli.command("show")(show_cli)
hocrf_cli.command("temper")(temper_cli)
hocrf_cli.command("templates")(templates_cli)
OVERRIDES = {"allow_extra_args": True, "ignore_unknown_options": True}
hocrf_cli.command("cross-fit", context_settings=OVERRIDES)(cross_fit_cli)
hocrf_cli.command("debug", context_settings=OVERRIDES)(debug_cli)
hocrf_cli.command("doubt", context_settings=OVERRIDES)(doubt_cli)
hocrf_cli.command("plan", context_settings=OVERRIDES)(plan_cli)
hocrf_cli.command("tune", context_settings=OVERRIDES)(tune_cli)
app.add_typer(hocrf_cli)
