"""`python -m grace_kp.cli`, for where the `grace-kp` script is not on the path."""

from grace_kp.cli._app import main

main()
