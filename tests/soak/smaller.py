"""A failure made small: keys and statements are taken away while the same failure stays."""

from trial import Failed, Refused, Trial


def same(model, job, folder, kind, optimize):
    """Whether a trial fails in this way."""
    try:
        Trial(model, job, folder, optimize).run()
    except Failed as failed:
        return failed.kind() == kind
    except (Refused, KeyError, ValueError):
        return False
    return False


def variants(model, job, fixed):
    """The model and the job with one thing less, what takes most away first."""
    for key in sorted(key for key in job if key not in fixed):
        yield model, {other: value for other, value in job.items() if other != key}
    for f in range(len(model.functions)):
        for s in reversed(range(len(model.functions[f].statements))):
            less = model.without(f, s)
            if less is not None:
                yield less.without_unused(), job


def smaller(model, job, fixed, folder, kind, optimize, most=120):
    """The smallest model and job that fail so, after at most so many trials."""
    tries = 0
    while True:
        for less, fewer in variants(model, job, fixed):
            tries += 1
            if tries > most:
                return model, job
            if same(less, fewer, folder, kind, optimize):
                model, job = less, fewer
                break
        else:
            return model, job
