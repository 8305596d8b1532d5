"""Claims of the paper that pages simulate or measure, see :mod:`relength.report.computed`."""

from functools import cache

from relength.papers.panm import exposure, scan_figures, shots
from relength.papers.panm import overhead_page as overhead
from relength.report.computed import Computed
from relength.runs.store import Store

QUOTES = {  # the sentence of the paper that makes the claim
    "panm-013": "This ensures any address in the address space will eventually appear between the "
    "base and end addresses.",
    "panm-016": "For example, in even an extreme address range of L_max = 10⁶ (in practice we "
    "rarely need that big range) to train input sequences of length 10, we only need to sample "
    "10⁵ log 10⁵ sequences, which is often smaller than the size of the training datasets.",
    "panm-017": "Empirically, in our experiments, we always train our method with the same number "
    "of batch size and training steps as other baselines to ensure a fair comparison, and we "
    "realize that it is always possible to expose all the addresses to our model during training.",
    "panm-018": "The memory's address space has b = 10 bits, corresponding to a maximum of 1024 "
    "unique addresses, which is greater than any sequence length in the experiments.",
    "panm-039": "The hidden state dimension for these models are set to 512, which results in "
    "around 1-3 millions parameters.",
    "panm-051": "The training size is 16990 and the test size is 3920.",
    "panm-070": "(∗) In this case, input overflow happens because maximum input length for Llama2 "
    "is 4096 tokens.",
    "panm-074": "Computational Complexity: PANM introduces additional computational overhead, "
    "particularly when used with smaller models like LSTMs, where complexity can increase by "
    "20-30%.",
    "panm-076": "Overall, with 2 Mode-1 pointers and 1 Mode-2 pointer, PANM operates at 70-80% of "
    "the speed of the backbone model.",
    "panm-077": "For instance, in the Copy task, PANM achieves 15 iterations per second compared "
    "to LSTM's 20 iterations per second.",
    "panm-078": "When using a Transformer Encoder, PANM runs at 77 iterations per second, whereas "
    "the Transformer runs at 90 iterations per second.",
    "panm-080": "Notably, the larger the backbone, the smaller the difference in running time.",
    "panm-090": "Using more H^c and H^a can still be beneficial in exchange for slower "
    "computation (see Appendix D.6).",
}
# Claims whose rule was changed once their results were known; their scopes say how.
RULE_CHANGED = ("panm-016", "panm-018", "panm-074", "panm-077", "panm-080")


@cache
def _exposed() -> list[exposure.Checked]:
    return exposure.checked(exposure.simulate(), exposure.in_training())


def _changed(claim: str) -> tuple[str, ...]:
    return ("rule",) if claim in RULE_CHANGED else ()


def decided(store: Store) -> list[Computed]:
    """Every claim that a page decides. The simulations take some seconds, once."""
    simulated = [
        Computed(
            claim=one.claim,
            quote=QUOTES[one.claim],
            page=exposure.PAGE,
            unit=one.unit,
            decision=one.decision,
            seen=one.computed,
            scope=exposure.SCOPES.get(one.claim, ""),
            changed=_changed(one.claim),
        )
        for one in _exposed()
    ]
    measured = [
        Computed(
            claim=claim,
            quote=QUOTES[claim],
            page=overhead.PAGE,
            unit="calculation" if claim == overhead.SIZED else "round",
            decision=decision,
            seen=overhead.judged(decision)[0],
            scope=overhead.SCOPES.get(claim, ""),
            needed=overhead.COMMAND,
            changed=_changed(claim),
        )
        for claim, decision in overhead.decisions(overhead.latest(store))
    ]
    prompts, short = shots.prompts(), shots.after_short_examples()
    counted = Computed(
        claim=shots.CLAIM,
        quote=QUOTES[shots.CLAIM],
        page=shots.PAGE,
        unit="calculation",
        decision=shots.overflow(prompts, short),
        seen=shots.seen(prompts, short),
        scope=shots.SCOPE,
    )
    of_size, seen = scan_figures.sizes()
    sized = Computed(
        claim=scan_figures.CLAIM,
        quote=QUOTES[scan_figures.CLAIM],
        page=scan_figures.PAGE,
        unit="calculation",
        decision=of_size,
        seen=seen,
        scope=scan_figures.SCOPE,
    )
    return [*simulated, *measured, counted, sized]
