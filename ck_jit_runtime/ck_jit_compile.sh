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

watcher='' parts=''
clean_up() {
    [[ -z $watcher ]] || kill -KILL "$watcher" 2>/dev/null || true
    [[ -z $parts ]] || rm -rf -- "$parts"
}
trap clean_up EXIT

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
}

run() {
    if ((verbose)); then
        printf '%q ' "$@" >&2
        printf '\n' >&2
    fi
    "$@" </dev/null
}

compile_whole() { run "$hipcc" "${arguments[@]}" "${link[@]}" -o "$output" "$source_path"; }

# Whether the host and the device half can be compiled side by side: this is ROCm's hipcc (which has hipconfig beside
# it) and not something that only looks like it, and the flags ask for nothing that ties the halves together.
can_split() {
    [[ ${CK_JIT_SPLIT-} != 0 && " ${arguments[*]}" == *' --offload-arch='* ]] || return 1
    case " ${arguments[*]} " in
    *' -fgpu-rdc '* | *' --cuda-'* | *' --offload-'*-only* | *' -c '* | *' -E '* | *' -S '* | *' --genco '* | *' -save-temps'*) return 1 ;;
    esac
    [[ -x $(dirname -- "$hipcc")/hipconfig || -x $(dirname -- "$(readlink -f -- "$hipcc")")/hipconfig ]]
}

# What hipcc does one after the other, with the device code going in at the link instead of at the host half: the host
# object refers to it by name, as it does in builds with -fgpu-rdc. The device code is the same as that of one command
# with the same -cuid. Without one, clang makes it up from all arguments, the output's name too, and no two builds agree.
# Status 1, with nothing said, when it cannot be done so and compile_whole has to.
splits() {
    can_split || return 1
    local device fatbin handle
    parts=$(mktemp -d -- "$(dirname -- "$output")/parts.XXXXXX") || return 1
    half=("$hipcc" "${arguments[@]}" -fPIC -cuid=ck_jit -Wno-unused-command-line-argument)
    find_precompiled || pch=''
    [[ -z $pch || ${CK_JIT_PRECOMPILE-} != first ]] || precompile || true
    device_half &
    device=$!
    run "${half[@]}" --cuda-host-only -c -o "$parts/host.o" "$source_path" >"$parts/host.log" 2>&1 || true
    [[ -z $pch || -e $pch ]] || precompile_meanwhile
    wait "$device" || exit # most errors are in both halves, and said once is enough
    cat "$parts/host.log" >&2
    [[ -s $parts/host.o ]] || exit 1
    fatbin=$(undefined_name __hip_fatbin) && handle=$(undefined_name __hip_gpubin_handle) || return 1
    write_device_part "$fatbin" "$handle" >"$parts/device.s"
    # From within the directory, so that no path has to be written into the assembler file.
    (cd "$parts" && run "$hipcc" -x assembler -c -o device.o device.s) >/dev/null 2>&1 || return 1
    run "$hipcc" "${arguments[@]}" "${link[@]}" -o "$output" -x none "$parts/host.o" "$parts/device.o" \
        >"$parts/link.log" 2>&1 || return 1
    cat "$parts/link.log" >&2
}

# The device half, with the precompiled header where there is one. Where it cannot be read or does not fit, without; an
# empty file in its place then says that it is not to be tried again.
device_half() {
    local device=("${half[@]}" --cuda-device-only -o "$parts/device.hipfb" "$source_path") intact
    if [[ -z $pch || ! -s $pch ]]; then
        run "${device[@]}"
        return
    fi
    touch -c -- "$pch" || true # in use
    is_intact &
    intact=$!
    if run "${device[@]}" "${without_modules[@]}" -Xclang -include-pch -Xclang "$pch" 2>"$parts/device.log"; then
        if wait "$intact"; then
            cat "$parts/device.log" >&2
            return
        fi
        rm -f -- "$pch"
        run "${device[@]}"
        return
    fi
    run "${device[@]}" || return
    : >"$parts/useless.pch"
    mv -f -- "$parts/useless.pch" "$pch" || true
}

is_intact() { [[ $(sha256sum <"$pch") == "$(cat -- "$pch.sum")" ]]; }

# In C++20, clang takes what it reads from a precompiled header for a module's, in which no two functions may differ in
# nothing but being for the host or the device. HIP's headers have such.
without_modules=(-Xclang -fno-cxx-modules)

# Where the device half's precompiled header for this blob is or will be, in $pch, and what it is made of, in $prologue. The
# root has records "blob TAB header", each closed by a zero byte. Clang itself refuses it once a header has changed.
find_precompiled() {
    local name=${source_path##*/} records record='' arch=" ${arguments[*]} "
    [[ -n ${CK_JIT_PRECOMPILED-} && ${CK_JIT_PRECOMPILE-} != 0 && $source_path == "$root"/* ]] || return 1
    arch=${arch#*' --offload-arch='}
    [[ $arch != *' --offload-arch='* && ${arch%% *} != *,* ]] || return 1
    type -P flock sha256sum >/dev/null || return 1
    records=("$root"/*.precompile)
    IFS= read -r -d '' record < <(grep -zhF -m 1 -- "$name"$'\t' "${records[@]}" 2>/dev/null) || true
    [[ $record == "$name"$'\t'* ]] || return 1
    prologue=$root/${record#*$'\t'}
    [[ -r $prologue ]] || return 1
    pch=$({
        printf '%s\0' "$prologue" "${arguments[@]}"
        stat -c '%Y %s' -- "$prologue"
    } | sha256sum)
    pch=$CK_JIT_PRECOMPILED/${pch%% *}.pch
}

# Makes the precompiled header, or waits for who is making it. It holds what the blob includes first and the templates of a
# kernel like the blob's, instantiated. Clang failing leaves an empty file; being killed leaves none.
precompile() {
    local status=0
    mkdir -p -- "$CK_JIT_PRECOMPILED" 2>/dev/null || return
    {
        flock 8 || return
        [[ ! -e $pch ]] || return 0
        rm -f -- "$pch".part*
        find "$(dirname -- "$CK_JIT_PRECOMPILED")" -type f -mtime +7 -delete || true # a hundred megabytes each
        run "${half[@]}" "${without_modules[@]}" --cuda-device-only -fsyntax-only -Xclang -emit-pch \
            -Xclang -fpch-instantiate-templates -Xclang -o -Xclang "$pch.part" "$prologue" || status=$?
        ((status < 128)) || return 0
        ((status == 0)) || : >"$pch.part"
        sha256sum <"$pch.part" >"$pch.sum" && mv -- "$pch.part" "$pch"
    } 8>"$pch.lock" >"$pch.log" 2>&1
}

# The same in the background, with what others leave of the machine, for the next blob. It outlives this script, in a process
# group of its own, but not the process that wanted the blob.
precompile_meanwhile() {
    set -m
    (
        set +m
        renice -n 19 -p "$BASHPID" || true
        while kill -0 "$PPID"; do sleep 1; done && kill -KILL 0 &
        precompile || true
        kill -KILL 0
    ) </dev/null >/dev/null 2>&1 &
    set +m
    disown
}

# The name in the host object that starts like this; some versions of clang end it in a hash of the cuid.
undefined_name() {
    local name
    name=$(tr '\0' '\n' <"$parts/host.o" | grep -axE "$1(_[0-9a-f]*)?" | sort -u)
    [[ -n $name && $name != *$'\n'* ]] && printf '%s' "$name"
}

# An object with the bundle of device code and the variable that its handle goes into at run time.
write_device_part() {
    printf '\t.section .hip_fatbin,"a",@progbits\n\t.globl %s\n\t.hidden %s\n\t.p2align 12\n%s:\n' "$1" "$1" "$1"
    printf '\t.incbin "device.hipfb"\n'
    printf '\t.section .hip_gpubin_handle,"aw",@progbits\n\t.globl %s\n\t.hidden %s\n\t.p2align 3\n%s:\n\t.zero 8\n' "$2" "$2" "$2"
    printf '\t.section .note.GNU-stack,"",@progbits\n'
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

link=(-shared -fPIC "-Wl,--build-id=sha1")
end_with_the_caller
splits || compile_whole
