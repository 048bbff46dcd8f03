# shellcheck shell=bash
# Sourced by quickstart.sh and test.sh: steps that say what they do, and Python environments.

# step TEXT COMMAND...: runs the command and prints one line. Its output goes to $log_dir and is shown when it fails.
step_number=0
step() {
    local text=$1 log status started=$SECONDS
    shift
    step_number=$((step_number + 1))
    log=${log_dir:?}/$(printf '%02d' "$step_number")-${text//[^a-zA-Z0-9]/-}.log
    printf '%-58s' "$text"
    # As a condition the command would run without errexit.
    set +e
    (
        set -e
        "$@"
    ) >"$log" 2>&1 </dev/null
    status=$?
    set -e
    if ((status == 0)); then
        printf ' %4d s\n' $((SECONDS - started))
    else
        printf ' failed\n'
        tail -n 60 "$log" >&2
        printf '%s: "%s" failed with status %s; all of its output is in %s\n' "${0##*/}" "$text" "$status" "$log" >&2
        exit 1
    fi
}

# The same for a command whose output is an answer: it is put into the variable ANSWER_TO.
step_answer() {
    local -n answer_to=$1
    local file
    shift
    file=$log_dir/answer
    step "$1" write_answer "$file" "${@:2}"
    # shellcheck disable=SC2034 # it is the caller's variable
    answer_to=$(<"$file")
}

write_answer() {
    local file=$1
    shift
    "$@" >"$file"
}

# python_environment DIRECTORY INPUT... -- PIP_ARGUMENT...: a virtual environment with what pip is asked to install.
# Nothing is done when it is there and the input files are the same as last time.
python_environment() {
    local directory=$1 inputs=() stamp
    shift
    while [[ $1 != -- ]]; do
        inputs+=("$1")
        shift
    done
    shift
    stamp=$(
        printf '%s\n' "$@"
        find "${inputs[@]}" -type f ! -name '*.pyc' -print0 | LC_ALL=C sort -z | xargs -0 sha256sum
    )
    [[ ! -f $directory/installed || $(<"$directory/installed") != "$stamp" ]] || return 0
    [[ -x $directory/bin/python ]] || "${PYTHON:-python3}" -m venv "$directory"
    "$directory/bin/python" -m pip install --quiet --disable-pip-version-check "$@"
    printf '%s\n' "$stamp" >"$directory/installed"
}
