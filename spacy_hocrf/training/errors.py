"""What can go wrong with those who share the work of training, each with a code to search for: what was
found, what was expected, which setting to change. The other codes are in `spacy_hocrf.errors`.
"""

from spacy_hocrf.errors import Coded

__all__ = ["WorkerErrors"]


class WorkerErrors(metaclass=Coded):
    H252 = (
        "The working file '{path}' of training cannot be read: {reason}. Is the disk full, or does "
        "anything else write there? See folder in [components.*.trainer.workers]."
    )
    H253 = (
        "Worker processes of training have ended {times} times without an answer on part {part} of the "
        "corpus: {reason}. Set a smaller number in [components.*.trainer.workers]: each needs memory for all "
        "weights."
    )
    H254 = "A worker process of training cannot work:\n{reason}"
    H255 = (
        "'{found}' cannot be handed to other processes ({reason}), which [components.*.trainer.workers] asks "
        "for. Take the block out, and training goes on in this process."
    )
    H256 = (
        "The checkpoint '{path}' cannot be read ({reason}). Delete it to begin anew, or name another file as "
        "checkpoint in [components.*.trainer]."
    )
    H352 = (
        "Actors of Ray are asked for, but Ray is not installed: pip install 'spacy-hocrf[ray]', or take "
        "processes in --workers or in [components.*.trainer.workers]."
    )
    H353 = (
        "There is no cluster of Ray at {found}: {error}. Let RAY_ADDRESS name one that runs, or nothing, to "
        "have one of this machine."
    )
    H401 = "{path} cannot be written: {reason}. Choose another place: see {setting}."
