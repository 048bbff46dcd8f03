#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# Compiles one blob to a shared object. The lazy libraries run this, and users may replace it.
#
#   ck_jit_compile.sh --blob-source PATH --blob-flags FLAGS --output FILE.so [--hipcc PATH] [--root DIR] [--verbose]
#   ck_jit_compile.sh --blob NAME --output FILE.so [...]        with CK_JIT_MANIFEST=FILE
#
# FLAGS: arguments separated by blanks; a backslash makes the next byte ordinary; @CK_JIT_ROOT@ in an argument stands
# for the root. A relative source is relative to the root. CK_JIT_MANIFEST names a file of records
# "name TAB source TAB flags", each closed by a zero byte. No part of them is ever read by a shell.
set -euo pipefail
export LC_ALL=C # bytes, not characters: a path need not be valid in any encoding

fail() {
    printf 'ck_jit_compile.sh: error: %s\n' "$1" >&2
    exit "${2:-1}"
}

source_path='' flags='' blob='' output='' hipcc='' root='' verbose=0
while (($#)); do
    case $1 in
    --verbose)
        verbose=1
        shift
        continue
        ;;
    --blob-source | --blob-flags | --blob | --output | --hipcc | --root) (($# >= 2)) || fail "$1 needs a value" 2 ;;
    *) fail "unknown option $1" 2 ;;
    esac
    case $1 in
    --blob-source) source_path=$2 ;;
    --blob-flags) flags=$2 ;;
    --blob) blob=$2 ;;
    --output) output=$2 ;;
    --hipcc) hipcc=$2 ;;
    --root) root=$2 ;;
    esac
    shift 2
done

# The record of $blob in CK_JIT_MANIFEST, into source_path and flags.
find_record() {
    local name rest
    [[ -n ${CK_JIT_MANIFEST-} ]] || fail "blob $blob is not in the library's manifest; set CK_JIT_MANIFEST to a file that lists it"
    [[ -r $CK_JIT_MANIFEST ]] || fail "cannot read CK_JIT_MANIFEST file $CK_JIT_MANIFEST"
    while IFS= read -r -d '' name; do
        rest=${name#*$'\t'}
        name=${name%%$'\t'*}
        if [[ $name == "$blob" && $rest == *$'\t'* ]]; then
            source_path=${rest%%$'\t'*}
            flags=${rest#*$'\t'}
            return
        fi
    done <"$CK_JIT_MANIFEST"
    fail "no record for blob $blob in CK_JIT_MANIFEST file $CK_JIT_MANIFEST"
}

# Splits its argument into the array `arguments`.
split_flags() {
    local text=$1 word='' in_word=0 piece next
    arguments=()
    while [[ -n $text ]]; do
        piece=${text%%[$' \t\n\\']*} # up to the next byte that means something
        word+=$piece
        [[ -z $piece ]] || in_word=1
        text=${text:${#piece}}
        [[ -n $text ]] || break
        next=${text:0:1}
        text=${text:1}
        if [[ $next == \\ ]]; then
            word+=${text:0:1}
            text=${text:1}
            in_word=1
        elif ((in_word)); then
            arguments+=("$word")
            word='' in_word=0
        fi
    done
    ((!in_word)) || arguments+=("$word")
}

find_hipcc() {
    local candidate
    if [[ -n ${CK_JIT_HIPCC-} ]]; then
        hipcc=$CK_JIT_HIPCC
        return
    fi
    for candidate in "${ROCM_PATH:+$ROCM_PATH/bin/hipcc}" "${ROCM_HOME:+$ROCM_HOME/bin/hipcc}" /opt/rocm/bin/hipcc; do
        if [[ -n $candidate && -x $candidate ]]; then
            hipcc=$candidate
            return
        fi
    done
    hipcc=$(type -P hipcc) || fail "no hipcc found; set CK_JIT_HIPCC or ROCM_PATH"
}

# The library that started this script holds the other end of our stdin. When it dies, so does the whole build, which
# is a process group of its own.
end_with_the_caller() {
    [[ -n ${CK_JIT_LIFELINE-} ]] || return 0
    (
        trap '' TERM # it ends the group first and itself last
        read -r _ || true
        kill -TERM 0
        sleep 1
        kill -KILL 0
    ) <&0 >/dev/null 2>&1 &
    watcher=$!
    disown "$watcher" # no word about it when it is killed
    trap 'kill -KILL "$watcher" 2>/dev/null || true' EXIT
}

[[ -n $output ]] || fail "--output is missing" 2
[[ -n $root ]] || root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
[[ -z $blob ]] || find_record
[[ -n $source_path ]] || fail "neither --blob-source nor --blob was given" 2
[[ $source_path == /* ]] || source_path=$root/$source_path
[[ -n $hipcc ]] || find_hipcc
[[ -x $hipcc ]] || fail "cannot run $hipcc"
[[ -r $source_path ]] || fail "cannot read the blob's source $source_path"

split_flags "$flags"
for i in "${!arguments[@]}"; do
    arguments[i]=${arguments[i]//@CK_JIT_ROOT@/"$root"}
done
# With --blob-source the caller has put the architecture into the flags.
if [[ -n $blob && -n ${CK_JIT_ARCH-} && $flags != *--offload-arch=* ]]; then
    arguments+=("--offload-arch=$CK_JIT_ARCH")
fi

end_with_the_caller
command=("$hipcc" "${arguments[@]}" -shared -fPIC "-Wl,--build-id=sha1" -o "$output" "$source_path")
if ((verbose)); then
    printf '%q ' "${command[@]}" >&2
    printf '\n' >&2
fi
"${command[@]}" </dev/null
