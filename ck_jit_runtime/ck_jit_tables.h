// SPDX-License-Identifier: MIT
//
// The types of the tables in the generated manifest header. The tables are constant data; the runtime only
// reads.
#pragma once

#include "ck_jit_slot.h"

#include <cstddef>
#include <cstdint>
#include <string>

namespace [[gnu::visibility("hidden")]] ck_jit {

// A function template whose specialisations blobs define.
struct KernelTemplate {
    const char *name;          // qualified, "fmha_fwd_"
    const char *symbol_prefix; // of every mangled specialisation, "_Z9fmha_fwd_I"
};

// One specialisation of an instance. Its mangled name is
// kernels[kernel].symbol_prefix + InstanceEntry::symbol_middle + suffixes[suffix].
struct KernelSymbol {
    std::uint16_t kernel;
    std::uint16_t suffix;
};

struct InstanceEntry {
    std::uint32_t blob; // index into Manifest::entries
    std::uint32_t first_symbol;
    std::uint32_t symbol_count;
    const char *symbol_middle;
};

struct BlobEntry {
    const char *name;             // file name of the blob; the key, ascending in strcmp order
    const char *source;           // path of the blob source relative to the JIT root
    const char *flags;            // compiler arguments separated by blanks; a backslash makes the next byte
                                  // ordinary; an argument may contain @CK_JIT_ROOT@, which ck_jit_compile.sh
                                  // replaces. No --offload-arch.
    const char *source_hash;      // SHA-256 of the source, hexadecimal
    const char *headers_hash;     // SHA-256 over every header that the flags can reach under the JIT root,
                                  // hexadecimal
    std::uint32_t first_instance; // its instances are neighbours in Manifest::instances
    std::uint32_t instance_count;
};

struct Manifest {
    const BlobEntry *entries;
    std::size_t entry_count;
    const InstanceEntry *instances;
    std::size_t instance_count;
    const KernelSymbol *symbols;
    const KernelTemplate *kernels;
    std::size_t kernel_count;
    const char *const *suffixes;
    const char *const *arches; // what --offload-arch named at build time; empty: any
    std::size_t arch_count;
    const char *hash;         // of all of the above, hexadecimal
    const char *name;         // CK_JIT_NAME: the default cache is <user cache>/<name>
    const char *default_root; // CK_JIT_ROOT as built in; relative: to the library's directory
    Slot *slots;              // one for each instance, in the order of `instances`
};

// Defined by the generated glue.
const Manifest &manifest() noexcept;

// gcnArchName of the current device ("gfx90a:sramecc+:xnack-"), "" when there is none. Defined by the
// generated glue.
std::string device_arch();

} // namespace ck_jit
