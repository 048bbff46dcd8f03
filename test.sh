#!/usr/bin/env bash
# All checks of the repository, on a machine with nothing of it installed: format, types, lint, then pytest.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cd "$here"
# shellcheck source=scripts/set_up.sh
source scripts/set_up.sh

usage() {
    cat <<'EOF'
usage: test.sh [--full] [PYTEST_ARGUMENT]...

Sets up what is missing (Debian packages, .venv, CK, a HIP compiler), checks format, types and scripts, and runs pytest on
two workers. --full runs the tests marked "full" too: hours. More arguments go to pytest.
EOF
}

marks='not full and not gpu'
case ${1:-} in
-h | --help)
    usage
    exit 0
    ;;
--full)
    marks='not gpu'
    shift
    ;;
esac

log_dir=$here/build/test-log
mkdir -p "$log_dir"
step "install Debian packages" scripts/install_packages.sh compiler python dev browser
# The bridges' tests compile Rust. A toolchain of rustup will do, if one is set up for this user.
if ! cargo clippy --version >/dev/null 2>&1; then
    step "install Rust" scripts/install_packages.sh rust
    export PATH=/usr/bin:$PATH
fi
step "install ck-post-build and its checkers into .venv" python_environment .venv pyproject.toml -- -e '.[dev]'
export PATH=$here/.venv/bin:$PATH PYTHON=$here/.venv/bin/python
step "fetch CK and aiter" scripts/fetch_ck.sh
step "assemble a HIP compiler and a stand-in library" scripts/rocm_prefix.sh --standin --assemble

# Tracked or not: a new file is checked before it is committed.
ours() { git ls-files -z --cached --others --exclude-standard -- "$@"; }
step "ruff check" ruff check .
step "ruff format" ruff format --check .
step "mypy" mypy ck_post_build
check_shell() { ours '*.sh' .ci/run | xargs -0 shellcheck -x; }
step "shellcheck" check_shell
# Not the golden files: they are what the generator writes and what CK's generator writes.
check_cpp_format() { ours '*.cpp' '*.h' '*.hpp' ':!tests/golden' ':!tests/bridge/golden' | xargs -0 clang-format-19 --dry-run -Werror; }
step "clang-format" check_cpp_format

# loadfile: tests of one file share expensive things. In the order of collection the long ones do not come last.
exec pytest -m "$marks" -n 2 --dist loadfile --no-loadscope-reorder "$@"
