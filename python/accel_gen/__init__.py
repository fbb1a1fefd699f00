"""accel-gen in Python: the command, and jobs that are built, run and read from a notebook.

    from accel_gen import Job

    job = Job("job.yaml", {"training.steps": 200})
    run = job.build().run()
    run.column("loss")
"""

from accel_gen.command import main

__all__ = ["AccelGenError", "Job", "Program", "Run", "main"]


def __getattr__(name):  # the command starts without what only notebooks need
    if name in __all__:
        from accel_gen import job

        return getattr(job, name)
    raise AttributeError(f"module 'accel_gen' has no attribute {name!r}")
