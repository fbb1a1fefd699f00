"""The hand-written cases and 3,000 random templates against Jinja2 itself; SEED=N in the environment takes another seed."""
import sys

import differential

sys.argv[1:] = ["--tap", "--random", "3000", *sys.argv[1:]]
differential.main()
