// SPDX-License-Identifier: MIT
#include "elf_file.h"

#include "failure.h"

#include <algorithm>
#include <cstring>

namespace ck_jit {

namespace {

#if defined(__x86_64__)
constexpr Elf64_Half kMachine = EM_X86_64;
#elif defined(__aarch64__)
constexpr Elf64_Half kMachine = EM_AARCH64;
#else
#error "add the ELF machine number of this processor"
#endif

std::string_view c_string(std::string_view table, std::uint64_t offset) {
    if (offset >= table.size())
        throw Failure("a name lies outside its string table");
    const std::string_view rest = table.substr(offset);
    const std::size_t end = rest.find('\0');
    if (end == rest.npos)
        throw Failure("a string table has no end");
    return rest.substr(0, end);
}

template <typename T> T load(std::string_view bytes) {
    T value;
    std::memcpy(&value, bytes.data(), sizeof value); // the file may be damaged: no alignment is promised
    return value;
}

std::uint64_t padded(std::uint64_t size) { return (size + 3) & ~std::uint64_t{3}; }

} // namespace

std::string_view ElfFile::range(std::uint64_t offset, std::uint64_t size) const {
    if (offset > bytes_.size() || size > bytes_.size() - offset)
        throw Failure("it is cut off: it refers to bytes beyond its end");
    return bytes_.substr(offset, size);
}

template <typename T>
std::vector<T> ElfFile::table(std::uint64_t offset, std::uint64_t count, std::uint64_t entry_size) const {
    if (count > 0 && entry_size != sizeof(T))
        throw Failure("a table has entries of a wrong size");
    if (count > bytes_.size())
        throw Failure("a table is longer than the file");
    const std::string_view raw = range(offset, count * sizeof(T));
    std::vector<T> entries(count);
    if (count > 0)
        std::memcpy(entries.data(), raw.data(), raw.size());
    return entries;
}

std::string_view ElfFile::contents(const Elf64_Shdr &section) const {
    return section.sh_type == SHT_NOBITS ? std::string_view() : range(section.sh_offset, section.sh_size);
}

void ElfFile::check_header(const Elf64_Ehdr &header) const {
    if (header.e_ident[EI_CLASS] != ELFCLASS64)
        throw Failure("not a 64-bit file");
    if (header.e_ident[EI_DATA] != ELFDATA2LSB)
        throw Failure("not a little-endian file");
    if (header.e_machine != kMachine)
        throw Failure("made for another processor (ELF machine " + std::to_string(header.e_machine) + ")");
    if (header.e_type != ET_DYN)
        throw Failure("not a shared object");
}

ElfFile::ElfFile(std::string_view bytes) : bytes_(bytes) {
    if (bytes.size() < sizeof(Elf64_Ehdr) || std::memcmp(bytes.data(), ELFMAG, SELFMAG) != 0)
        throw Failure("not an ELF file");
    const auto header = load<Elf64_Ehdr>(bytes);
    check_header(header);
    for (const auto &segment : table<Elf64_Phdr>(header.e_phoff, header.e_phnum, header.e_phentsize))
        range(segment.p_offset, segment.p_filesz);
    sections_ = table<Elf64_Shdr>(header.e_shoff, header.e_shnum, header.e_shentsize);
    for (const auto &section : sections_)
        contents(section);
    if (header.e_shstrndx >= sections_.size())
        throw Failure("it has no section names");
    section_names_ = contents(sections_[header.e_shstrndx]);
    read_functions();
}

void ElfFile::read_functions() {
    const auto dynsym = std::find_if(sections_.begin(), sections_.end(),
                                     [](const Elf64_Shdr &section) { return section.sh_type == SHT_DYNSYM; });
    if (dynsym == sections_.end())
        throw Failure("it has no .dynsym");
    if (dynsym->sh_link >= sections_.size())
        throw Failure(".dynsym has no strings");
    const std::string_view names = contents(sections_[dynsym->sh_link]);
    const auto symbols =
        table<Elf64_Sym>(dynsym->sh_offset, dynsym->sh_size / sizeof(Elf64_Sym), dynsym->sh_entsize);
    for (const auto &symbol : symbols)
        if (ELF64_ST_TYPE(symbol.st_info) == STT_FUNC && symbol.st_shndx != SHN_UNDEF)
            functions_.push_back(c_string(names, symbol.st_name));
}

std::string_view ElfFile::section(std::string_view name) const {
    for (const auto &section : sections_)
        if (c_string(section_names_, section.sh_name) == name)
            return contents(section);
    return {};
}

std::string_view ElfFile::build_id() const {
    std::string_view notes = section(".note.gnu.build-id");
    while (notes.size() >= sizeof(Elf64_Nhdr)) {
        const auto note = load<Elf64_Nhdr>(notes);
        const std::uint64_t start = sizeof note + padded(note.n_namesz);
        const std::uint64_t end = start + padded(note.n_descsz);
        if (end > notes.size())
            return {};
        if (note.n_type == NT_GNU_BUILD_ID)
            return notes.substr(start, note.n_descsz);
        notes.remove_prefix(end);
    }
    return {};
}

} // namespace ck_jit
