#!/bin/sh
# The cases and random templates against Jinja2 itself.
exec "$PYTHON" tests/jinja/differential.py build/tests/jinja/render_driver --random "${RANDOM_TEMPLATES:-5000}"
