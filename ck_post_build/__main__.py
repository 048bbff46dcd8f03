"""``python -m ck_post_build`` is the command."""

from ck_post_build.cli import main

main()
