#!/usr/bin/env bash
# Stands for hipcc: compiles host code with g++, and can be told to misbehave. FAKE_HIPCC_LOG gets a line per compile.
set -euo pipefail
if [[ ${1-} == --version ]]; then
    printf 'fake hipcc %s\n' "${FAKE_HIPCC_VERSION-1}"
    exit 0
fi
[[ -z ${FAKE_HIPCC_LOG-} ]] || printf '%s\n' "${!#}" >>"$FAKE_HIPCC_LOG"
arch='' arguments=()
for argument; do
    case $argument in
    --offload-arch=*) arch=${FAKE_HIPCC_ARCH-${argument#*=}} ;;
    -x | hip) ;;
    *) arguments+=("$argument") ;;
    esac
done
case ${FAKE_HIPCC_MODE-} in
fail)
    printf 'some.h:1: note: all is well so far\nsome.h:3:5: error: no such kernel\n' >&2
    exit 3
    ;;
hang) sleep 1000 & wait ;;
flood)
    yes 'a line of a hundred bytes or so, as compilers print them by the thousand when they are not in the mood' |
        head -c 100000000 || true # yes dies of SIGPIPE
    ;;
slow) sleep "${FAKE_HIPCC_SECONDS-1}" ;;
empty) exit 0 ;;
esac
"${FAKE_HIPCC_CXX-g++}" "-DTOY_ARCH=\"$arch\"" "${arguments[@]}"
[[ ${FAKE_HIPCC_MODE-} != slow_end ]] || sleep "${FAKE_HIPCC_SECONDS-1}"
