# shellcheck shell=bash
# Sourced by fetch_ck.sh and rocm_prefix.sh: what both need to put a tree of files outside the repository so that
# a run that dies, or two runs at once, never leave half of one under its final name.

say() { printf '%s: %s\n' "${0##*/}" "$*" >&2; }

die() {
    say "$*"
    exit 1
}

default_work_dir() {
    printf '%s\n' "${XDG_CACHE_HOME:-${HOME:?neither XDG_CACHE_HOME nor HOME is set}/.cache}/ck-post-build-inputs"
}

# A Python with pip: PYTHON, the repository's own environment, python3.
find_python() {
    local repository=$1 candidate
    for candidate in "${PYTHON:-}" "$repository/.venv/bin/python" python3; do
        if [[ -n $candidate ]] && "$candidate" -m pip --version >/dev/null 2>&1; then
            printf '%s\n' "$candidate"
            return
        fi
    done
    die "no Python with pip (PYTHON, $repository/.venv/bin/python and python3 were tried);" \
        "install python3-pip or set PYTHON"
}

# Takes the work directory's lock and removes what earlier runs left. Child processes inherit the lock, so a leftover
# that is found here has no writer any more, not even an orphaned pip. The kernel drops the lock with the last of them.
lock_work_dir() {
    local work_dir=$1
    mkdir -p "$work_dir"
    exec {work_dir_lock}>"$work_dir/.lock"
    flock "$work_dir_lock"
    find "$work_dir" -maxdepth 1 -name '.partial-*' -exec rm -rf {} +
}

unlock_work_dir() {
    exec {work_dir_lock}>&-
}

# Makes $scratch, a directory in the work directory (so that a rename stays in one file system), removed at exit.
scratch=
make_scratch_dir() {
    local work_dir=$1
    scratch=$(mktemp -d "$work_dir/.partial-XXXXXXXX")
    trap 'rm -rf "$scratch"' EXIT
}

# The wheel named and hashed on the one line of requirement text, downloaded into a directory. Later arguments go to pip.
# The hash means that nothing but the file this project was tried with is ever unpacked.
download_wheel() {
    local python=$1 directory=$2 requirement=$3
    shift 3
    mkdir -p "$directory"
    printf '%s\n' "$requirement" >"$directory/requirements.txt"
    "$python" -m pip download --quiet --disable-pip-version-check --no-deps --only-binary=:all: --require-hashes \
        "$@" --dest "$directory" --requirement "$directory/requirements.txt" >&2 ||
        die "could not download ${requirement%% *}"
}
