// SPDX-License-Identifier: MIT
//
// Blobs, and how slots and names lead to them.
#pragma once

#include "ck_jit_tables.h"

#include <string>
#include <vector>

namespace [[gnu::visibility("hidden")]] ck_jit {

struct Blob {
    std::string name;
    const BlobEntry *entry; // null: the manifest does not have it, `ck_jit_compile.sh --blob NAME` does
};

// A slot for a blob that is not in the manifest, made by slot_by_name() and kept for ever.
struct NamedSlot : Slot {
    NamedSlot(std::string blob_name, std::size_t kernel_number, NamedSlot *older)
        : blob(std::move(blob_name)), kernel(kernel_number), next(older) {}
    const std::string blob;
    const std::size_t kernel; // the template that must be there
    NamedSlot *const next;
};

const BlobEntry *find_blob_entry(const char *name);
Blob blob_by_name(const std::string &name);

bool is_named(const Slot *slot);
Blob blob_of(const Slot *slot);

// The mangled names of all specialisations that the blob must define.
std::string symbol_name(const InstanceEntry &instance, const KernelSymbol &symbol);
std::vector<std::string> expected_symbols(const BlobEntry &entry);

} // namespace ck_jit
