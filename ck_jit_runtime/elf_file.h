// SPDX-License-Identifier: MIT
//
// Reads a shared object that may be damaged.
#pragma once

#include <elf.h>
#include <string>
#include <string_view>
#include <vector>

namespace [[gnu::visibility("hidden")]] ck_jit {

class ElfFile {
  public:
    // Throws Failure unless the bytes are a 64-bit shared object for this machine whose segments,
    // sections and dynamic symbols lie within them. The bytes must outlive the object.
    explicit ElfFile(std::string_view bytes);

    // Names of the functions it defines for others, in the order of .dynsym.
    const std::vector<std::string_view> &functions() const { return functions_; }

    // The contents of the first section with that name; empty if there is none.
    std::string_view section(std::string_view name) const;

    // The GNU build id as raw bytes; empty if there is none.
    std::string_view build_id() const;

  private:
    std::string_view range(std::uint64_t offset, std::uint64_t size) const;
    template <typename T>
    std::vector<T> table(std::uint64_t offset, std::uint64_t count, std::uint64_t entry_size) const;
    std::string_view contents(const Elf64_Shdr &section) const;
    void check_header(const Elf64_Ehdr &header) const;
    void read_functions();

    std::string_view bytes_;
    std::vector<Elf64_Shdr> sections_;
    std::string_view section_names_;
    std::vector<std::string_view> functions_;
};

} // namespace ck_jit
