// SPDX-License-Identifier: MIT
#include "offload_bundle.h"

#include "arch.h"
#include "failure.h"

#include <cstdint>
#include <cstring>
#include <elf.h>

namespace ck_jit {

namespace {

constexpr std::string_view kMagic = "__CLANG_OFFLOAD_BUNDLE__";
constexpr std::string_view kCompressedMagic = "CCOB";
constexpr Elf64_Half kAmdGpu = 224; // EM_AMDGPU; not in every <elf.h>

class Reader {
  public:
    explicit Reader(std::string_view bytes) : bytes_(bytes) {}
    std::string_view take(std::uint64_t count) {
        if (count > bytes_.size())
            throw Failure("its table of device code is cut off");
        const std::string_view taken = bytes_.substr(0, count);
        bytes_.remove_prefix(count);
        return taken;
    }
    std::uint64_t number() {
        std::uint64_t value;
        std::memcpy(&value, take(sizeof value).data(), sizeof value);
        return value;
    }

  private:
    std::string_view bytes_;
};

// "hipv4-amdgcn-amd-amdhsa--gfx90a:xnack-" names gfx90a:xnack-; the host's entry names nothing.
std::string_view target_of(std::string_view entry_id) {
    if (entry_id.substr(0, 3) != "hip")
        return {};
    const std::size_t dashes = entry_id.rfind("--");
    return dashes == entry_id.npos ? std::string_view() : entry_id.substr(dashes + 2);
}

void check_code_object(std::string_view code) {
    if (code.size() < sizeof(Elf64_Ehdr) || std::memcmp(code.data(), ELFMAG, SELFMAG) != 0)
        throw Failure("its device code is not an ELF file");
    Elf64_Ehdr header;
    std::memcpy(&header, code.data(), sizeof header);
    if (header.e_machine != kAmdGpu)
        throw Failure("its device code is not for an AMD GPU");
}

} // namespace

void check_device_code(std::string_view hip_fatbin, const std::string &arch) {
    if (hip_fatbin.empty() || hip_fatbin.substr(0, kCompressedMagic.size()) == kCompressedMagic)
        return;
    Reader reader(hip_fatbin);
    if (reader.take(kMagic.size()) != kMagic)
        throw Failure("its .hip_fatbin holds no bundle of device code");
    std::string found;
    for (std::uint64_t left = reader.number(); left > 0; --left) {
        const std::uint64_t offset = reader.number();
        const std::uint64_t size = reader.number();
        const std::string_view target = target_of(reader.take(reader.number()));
        if (target.empty())
            continue;
        if (arch_runs_on(target, arch)) {
            Reader at_code(hip_fatbin);
            at_code.take(offset);
            return check_code_object(at_code.take(size));
        }
        found += (found.empty() ? "" : ", ") + std::string(target);
    }
    throw Failure("it has device code for " + (found.empty() ? "no GPU" : found) + ", not for " + arch);
}

} // namespace ck_jit
