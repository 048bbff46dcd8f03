// SPDX-License-Identifier: MIT
#include "blob.h"

#include "ck_jit_by_name.h"
#include "failure.h"
#include "lazy.h"
#include "shared_state.h"

#include <cstring>
#include <functional>

namespace ck_jit {

namespace {

// Eight bytes at a time, because the warm by-name call is little else than this. A byte-wise hash of a name
// of 150 bytes costs more than the call it is for.
std::uint64_t hash_name(const char *name, std::size_t length) noexcept {
    constexpr std::uint64_t kFactor = 0x9e3779b97f4a7c15;
    std::uint64_t hash = length * kFactor;
    const auto mix = [&](std::uint64_t word) {
        hash = (hash ^ word) * kFactor;
        hash ^= hash >> 29;
    };
    std::uint64_t word = 0;
    for (; length >= 8; length -= 8, name += 8) {
        std::memcpy(&word, name, 8);
        mix(word);
    }
    word = 0;
    std::memcpy(&word, name, length);
    mix(word);
    return hash;
}

// Open addressing over the manifest's entries, at most half full.
struct NameIndex {
    NameIndex() {
        std::size_t size = 8;
        while (size < 2 * manifest().entry_count)
            size *= 2;
        places.assign(size, 0);
        for (std::size_t i = 0; i < manifest().entry_count; ++i) {
            const char *name = manifest().entries[i].name;
            std::size_t place = hash_name(name, std::strlen(name)) & (size - 1);
            while (places[place] != 0)
                place = (place + 1) & (size - 1);
            places[place] = static_cast<std::uint32_t>(i + 1);
        }
    }

    const BlobEntry *find(const char *name) const noexcept {
        const std::size_t mask = places.size() - 1;
        for (std::size_t place = hash_name(name, std::strlen(name)) & mask; places[place] != 0;
             place = (place + 1) & mask) {
            const BlobEntry &entry = manifest().entries[places[place] - 1];
            if (std::strcmp(entry.name, name) == 0)
                return &entry;
        }
        return nullptr;
    }

    std::vector<std::uint32_t> places; // index + 1; 0 is free
};

Lazy<NameIndex> the_index;

// Slots are only ever put in front, so readers need no lock.
constexpr std::size_t kNamedBuckets = 256;
std::atomic<NamedSlot *> named_slots[kNamedBuckets];

Slot *named_slot(const char *blob, std::size_t kernel) {
    auto &bucket = named_slots[hash_name(blob, std::strlen(blob)) % kNamedBuckets];
    const auto find = [&]() -> NamedSlot * {
        for (NamedSlot *slot = bucket.load(std::memory_order_acquire); slot; slot = slot->next)
            if (slot->kernel == kernel && slot->blob == blob)
                return slot;
        return nullptr;
    };
    if (NamedSlot *slot = find())
        return slot;
    const StateLock lock;
    if (NamedSlot *slot = find())
        return slot;
    auto *slot = new NamedSlot(blob, kernel, bucket.load(std::memory_order_relaxed));
    bucket.store(slot, std::memory_order_release);
    return slot;
}

Slot *manifest_slot(const BlobEntry &entry, std::size_t kernel) noexcept {
    const Manifest &m = manifest();
    for (std::uint32_t i = entry.first_instance; i < entry.first_instance + entry.instance_count; ++i) {
        const InstanceEntry &instance = m.instances[i];
        for (std::uint32_t s = 0; s < instance.symbol_count; ++s)
            if (m.symbols[instance.first_symbol + s].kernel == kernel)
                return &m.slots[i];
    }
    return nullptr;
}

} // namespace

const BlobEntry *find_blob_entry(const char *name) {
    return the_index.get([] { return NameIndex(); }).find(name);
}

Blob blob_by_name(const std::string &name) { return {name, find_blob_entry(name.c_str())}; }

bool is_named(const Slot *slot) {
    const std::less<const Slot *> before; // compares pointers into different arrays too
    return before(slot, manifest().slots) || !before(slot, manifest().slots + manifest().instance_count);
}

Blob blob_of(const Slot *slot) {
    if (is_named(slot))
        return {static_cast<const NamedSlot *>(slot)->blob, nullptr};
    const BlobEntry &entry = manifest().entries[manifest().instances[slot - manifest().slots].blob];
    return {entry.name, &entry};
}

std::string symbol_name(const InstanceEntry &instance, const KernelSymbol &symbol) {
    const Manifest &m = manifest();
    return std::string(m.kernels[symbol.kernel].symbol_prefix) + instance.symbol_middle +
           m.suffixes[symbol.suffix];
}

std::vector<std::string> expected_symbols(const BlobEntry &entry) {
    const Manifest &m = manifest();
    std::vector<std::string> names;
    for (std::uint32_t i = entry.first_instance; i < entry.first_instance + entry.instance_count; ++i)
        for (std::uint32_t s = 0; s < m.instances[i].symbol_count; ++s)
            names.push_back(symbol_name(m.instances[i], m.symbols[m.instances[i].first_symbol + s]));
    return names;
}

Slot *slot_by_name(const char *blob, std::size_t kernel) noexcept {
    try {
        if (!blob || !blob[0])
            throw Failure("no blob name was given");
        const BlobEntry *entry = find_blob_entry(blob);
        if (!entry)
            return named_slot(blob, kernel);
        if (Slot *slot = manifest_slot(*entry, kernel))
            return slot;
        const bool known = kernel < manifest().kernel_count;
        throw Failure(std::string("blob not resolved: ") + blob + ": it defines no " +
                      (known ? manifest().kernels[kernel].name : "such function"));
    } catch (const std::exception &error) {
        set_last_error(error.what());
        return nullptr;
    }
}

} // namespace ck_jit
