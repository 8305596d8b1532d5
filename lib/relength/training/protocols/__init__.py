"""Every protocol by name. A new one is one file in this folder and one line here.

Importing them takes no torch: what needs it is imported where it is computed.
"""

from relength.training.protocols.base import Protocol
from relength.training.protocols.epochs import Epochs
from relength.training.protocols.epochs_by_length import EpochsByLength
from relength.training.protocols.facts import Facts
from relength.training.protocols.fine_tuning import FineTuning
from relength.training.protocols.fixed_steps import FixedSteps
from relength.training.protocols.plain_epochs import PlainEpochs
from relength.training.protocols.state_space import StateSpace
from relength.training.protocols.streaming import Streaming
from relength.training.protocols.untrained import Untrained

PROTOCOLS: dict[str, type[Protocol]] = {
    "epochs": Epochs,
    "streaming": Streaming,
    "state_space": StateSpace,
    "plain_epochs": PlainEpochs,
    "facts": Facts,
    "fixed_steps": FixedSteps,
    "epochs_by_length": EpochsByLength,
    "fine_tuning": FineTuning,
    "untrained": Untrained,
}
