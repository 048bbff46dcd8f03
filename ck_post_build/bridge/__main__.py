"""``python -m ck_post_build.bridge`` runs ``ck-post-build bridge``."""

from ck_post_build.bridge.command import bridge_command

if __name__ == "__main__":
    bridge_command(prog_name="ck-post-build bridge")
