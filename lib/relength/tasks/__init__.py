"""Every task by name. A new task is one file in this folder and one line here."""

from relength.tasks import (
    algorithmic,
    bigbench,
    instructions,
    mathematics,
    scan_cut_offs,
    squad,
    state_space,
)
from relength.tasks.babi_by_length import TASKS as BABI_BY_LENGTH
from relength.tasks.base import Task
from relength.tasks.cfq import Cfq
from relength.tasks.copying import (
    Copy,
    DeDupe,
    InvReCopy,
    InvReverseReCopy,
    PosRetrieve,
    ReCopy,
    ReverseCopy,
    ReverseReCopy,
)
from relength.tasks.dyck import Dyck2, Dyck2Unique, Dyck3, Dyck3Unique
from relength.tasks.facts import OneFact, TwoFacts, TwoFactsThenOne
from relength.tasks.lookup import Lookup, ReverseLookup
from relength.tasks.multi30k import TASKS as MULTI30K
from relength.tasks.new_places import OneFactNewPlaces, TwoFactsNewPlaces
from relength.tasks.scan import Scan
from relength.tasks.variable_tracking import OneHop, TwoHops


def refused(name: str) -> str:
    """Why there is no task of this name, where one could be meant; empty for most names."""
    if why := scan_cut_offs.refused(name):
        return why
    family = name.rpartition("_")[0]
    alike = [task for task in TASKS if family and task.rpartition("_")[0] == family]
    return f"choose one of {', '.join(alike)}" if alike else ""


TASKS: dict[str, type[Task]] = {
    "copy": Copy,
    "reverse_copy": ReverseCopy,
    "lookup": Lookup,
    "reverse_lookup": ReverseLookup,
    "recopy": ReCopy,
    "reverse_recopy": ReverseReCopy,
    "inv_recopy": InvReCopy,
    "inv_reverse_recopy": InvReverseReCopy,
    "dedupe": DeDupe,
    "posretrieve": PosRetrieve,
    "scan": Scan,
    **scan_cut_offs.TASKS,
    "cfq": Cfq,
    "panm_copy": algorithmic.Copy,
    "panm_reverse": algorithmic.Reverse,
    "panm_mix": algorithmic.Mix,
    "panm_dynamic_recall": algorithmic.DynamicRecall,
    "panm_priority_sort": algorithmic.PrioritySort,
    "panm_id_sort": algorithmic.IDSort,
    "dnc_sort": state_space.Sort,
    "dnc_copy": state_space.Copy,
    "dnc_differentiation": state_space.Differentiation,
    "dnc_shift": state_space.Shift,
    "dnc_add": state_space.Add,
    "dnc_search": state_space.Search,
    "dnc_logic": state_space.Logic,
    "dyck_2": Dyck2,
    "dyck_3": Dyck3,
    "dyck_2_unique": Dyck2Unique,
    "dyck_3_unique": Dyck3Unique,
    "babi_one_fact": OneFact,
    "babi_two_facts": TwoFacts,
    "babi_two_facts_then_one": TwoFactsThenOne,
    "babi_one_fact_new_places": OneFactNewPlaces,
    "babi_two_facts_new_places": TwoFactsNewPlaces,
    "vt_1hop": OneHop,
    "vt_2hop": TwoHops,
    **mathematics.TASKS,
    **BABI_BY_LENGTH,
    **MULTI30K,
    **instructions.TASKS,
    **bigbench.TASKS,
    **squad.TASKS,
}
