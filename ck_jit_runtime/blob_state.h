// SPDX-License-Identifier: MIT
//
// What this process knows about each blob it was asked for, and who works on it: single flight between
// threads, and the memory of failures.
#pragma once

#include "cache.h"

#include <optional>
#include <string>

namespace [[gnu::visibility("hidden")]] ck_jit {

enum class Claim {
    ours,   // the caller works on it now and must give it back
    loaded, // nothing to do
    failed, // it failed a short while ago, and is not tried again yet
    busy,   // another thread works on it
};

struct ClaimResult {
    Claim claim;
    std::string error;              // of a failed one
    void *const *kernels = nullptr; // of a loaded one that is not in the manifest
};

ClaimResult claim(const Blob &blob);

// Sleeps until no thread works on the blob.
void wait_while_busy(const std::string &name);

// The right to work on a blob, from Claim::ours. Whatever happens, the destructor gives it back.
class Ownership {
  public:
    explicit Ownership(std::string name) : name_(std::move(name)) {}
    Ownership(Ownership &&other) noexcept : name_(std::move(other.name_)) { other.name_.clear(); }
    ~Ownership();

    void loaded(void *const *kernels);      // for good
    void failed(const std::string &reason); // and not tried again for a while: 1 s, then twice as long
                                            // each time, 60 s at most
    void
    compiled(Library own_copy); // not loaded yet; the copy is kept here unless it is in a cache directory
    std::optional<Library> take_own_copy(); // what compiled() left

  private:
    void release();
    std::string name_;
};

} // namespace ck_jit
