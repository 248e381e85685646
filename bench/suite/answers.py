"""What must be the same before figures are compared."""

SAME_LOSS, SAME_PROBABILITY = 2e-4, 2e-5  # relative; absolute
MOVED, SAME_STEP = 4e-3, 0.02  # of a loss, what some steps must change; of that, what others' may differ by


def wrong(ours, theirs):
    """What keeps two contestants' figures from being compared, or nothing."""
    if theirs.loss is not None and not abs(theirs.loss - ours.loss) <= SAME_LOSS * abs(ours.loss):
        return f"its first loss is {theirs.loss:.6g}, ours {ours.loss:.6g}"
    if theirs.apart is not None and not theirs.apart <= SAME_PROBABILITY:
        return f"its probabilities are up to {theirs.apart:.2g} from ours"
    return None


def unlike(ours, theirs, steps):
    """What keeps two programs' first steps from being the same, or nothing, by the losses in phase TRAIN. Losses follow
    from gradients and updates; they must have changed by more than what may be rounding, so that a wrong update shows.
    """
    if len(ours) != steps or len(theirs) != steps:
        return f"it took {len(theirs)} steps, ours {len(ours)}, where {steps} were asked for"
    moved = max(abs(loss - ours[0]) for loss in ours)
    if not moved >= MOVED * abs(ours[0]):
        return f"nothing was learnt: our losses are {ours}"
    if not all(abs(a - b) <= SAME_STEP * moved + SAME_LOSS * abs(ours[0]) for a, b in zip(ours, theirs)):
        return f"the losses of its steps are {theirs}, ours {ours}"
    return None
