#include "code_object.h"

#include "decompress.h"
#include "msgpack.h"

#include <elf.h>

#include <algorithm>
#include <optional>

namespace hip_standin {
namespace {

constexpr char bundle_magic[] = "__CLANG_OFFLOAD_BUNDLE__";
constexpr char elf_magic[] = "\177ELF";
constexpr uint32_t note_type_amdgpu_metadata = 32;

// An image of unknown size: its headers say how much of the rest may be read.
ByteView unbounded(const void *image) { return {image, PTRDIFF_MAX}; }

std::vector<std::string> split(const std::string &text, char separator) {
    std::vector<std::string> parts(1);
    for (const char c : text)
        if (c == separator)
            parts.emplace_back();
        else
            parts.back() += c;
    return parts;
}

Kernel parse_kernel(const Msgpack &metadata) {
    Kernel kernel;
    kernel.name = metadata.text_at(".name");
    kernel.kernarg_bytes = static_cast<uint32_t>(metadata.integer_at(".kernarg_segment_size", 0));
    kernel.static_shared_bytes = static_cast<uint32_t>(metadata.integer_at(".group_segment_fixed_size", 0));
    kernel.private_bytes = static_cast<uint32_t>(metadata.integer_at(".private_segment_fixed_size", 0));
    kernel.vector_registers = static_cast<uint32_t>(metadata.integer_at(".vgpr_count", 0));
    kernel.max_block_size = static_cast<uint32_t>(metadata.integer_at(".max_flat_workgroup_size", 1024));
    const Msgpack *arguments = metadata.find(".args");
    if (!arguments)
        return kernel;
    for (const Msgpack &argument : arguments->items) {
        std::string kind = argument.text_at(".value_kind");
        if (kind.rfind("hidden_", 0) == 0)
            continue;
        kernel.arguments.push_back({argument.text_at(".name"), std::move(kind),
                                    static_cast<uint32_t>(argument.integer_at(".offset", 0)),
                                    static_cast<uint32_t>(argument.integer_at(".size", 0))});
    }
    return kernel;
}

// The descriptor of the first AMDGPU metadata note in a run of notes.
std::optional<ByteView> find_metadata(ByteView notes) {
    const auto padded = [](uint64_t size) { return (size + 3) & ~uint64_t{3}; };
    for (uint64_t position = 0; position + sizeof(Elf64_Nhdr) <= notes.size();) {
        const auto header = notes.read<Elf64_Nhdr>(position);
        const uint64_t name = position + sizeof header;
        const uint64_t descriptor = name + padded(header.n_namesz);
        if (header.n_type == note_type_amdgpu_metadata &&
            notes.slice(name, header.n_namesz).starts_with("AMDGPU"))
            return notes.slice(descriptor, header.n_descsz);
        position = descriptor + padded(header.n_descsz);
    }
    return std::nullopt;
}

// The device image that fits best in an uncompressed bundle.
std::optional<ByteView> find_in_bundle(ByteView bundle, const std::string &arch) {
    std::optional<ByteView> best;
    size_t best_features = 0;
    const auto count = bundle.read<uint64_t>(sizeof bundle_magic - 1);
    uint64_t position = sizeof bundle_magic - 1 + sizeof count;
    for (uint64_t i = 0; i < count; ++i) {
        const auto offset = bundle.read<uint64_t>(position);
        const auto size = bundle.read<uint64_t>(position + 8);
        const auto id_size = bundle.read<uint64_t>(position + 16);
        const std::string id = bundle.slice(position + 24, id_size).text();
        position += 24 + id_size;
        // As in hipv4-amdgcn-amd-amdhsa--gfx90a:xnack-; the host's entry comes first.
        const size_t target = id.find("--");
        if (id.rfind("hip", 0) != 0 || target == std::string::npos || size == 0)
            continue;
        const std::string name = id.substr(target + 2);
        if (!target_fits(name, arch))
            continue;
        const auto features = static_cast<size_t>(std::count(name.begin(), name.end(), ':'));
        if (!best || features > best_features) {
            best = bundle.slice(offset, size);
            best_features = features;
        }
    }
    return best;
}

} // namespace

bool target_fits(const std::string &target, const std::string &arch) {
    const std::vector<std::string> wanted = split(target, ':');
    const std::vector<std::string> device = split(arch, ':');
    if (wanted[0] != device[0])
        return false;
    for (size_t i = 1; i < wanted.size(); ++i) {
        std::string opposite = wanted[i];
        if (opposite.empty())
            return false;
        opposite.back() = opposite.back() == '+' ? '-' : '+';
        if (std::find(device.begin() + 1, device.end(), opposite) != device.end())
            return false;
    }
    return true;
}

size_t image_size(const void *image) {
    const ByteView bytes = unbounded(image);
    if (bytes.starts_with(compressed_bundle_magic))
        return compressed_bundle_size(bytes);
    uint64_t end = 0;
    if (bytes.starts_with(bundle_magic)) {
        const auto count = bytes.read<uint64_t>(sizeof bundle_magic - 1);
        uint64_t position = sizeof bundle_magic - 1 + sizeof count;
        for (uint64_t i = 0; i < count; ++i) {
            end = std::max(end, bytes.read<uint64_t>(position) + bytes.read<uint64_t>(position + 8));
            position += 24 + bytes.read<uint64_t>(position + 16);
        }
        return std::max(end, position);
    }
    if (bytes.starts_with(elf_magic)) {
        const auto header = bytes.read<Elf64_Ehdr>(0);
        end = header.e_shoff + uint64_t{header.e_shnum} * header.e_shentsize;
        for (unsigned i = 0; i < header.e_phnum; ++i) {
            const auto segment = bytes.read<Elf64_Phdr>(header.e_phoff + uint64_t{i} * sizeof(Elf64_Phdr));
            end = std::max(end, segment.p_offset + segment.p_filesz);
        }
        return end;
    }
    throw std::runtime_error("neither an offload bundle nor an ELF file");
}

CodeObject parse_code_object(ByteView elf) {
    if (!elf.starts_with(elf_magic))
        throw std::runtime_error("device code is no ELF file");
    const auto header = elf.read<Elf64_Ehdr>(0);
    constexpr uint16_t machine_amdgpu = 224;
    if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_machine != machine_amdgpu)
        throw std::runtime_error("device code is for another machine than AMDGPU");
    for (unsigned i = 0; i < header.e_phnum; ++i) {
        const auto segment = elf.read<Elf64_Phdr>(header.e_phoff + uint64_t{i} * sizeof(Elf64_Phdr));
        if (segment.p_type != PT_NOTE)
            continue;
        const auto metadata = find_metadata(elf.slice(segment.p_offset, segment.p_filesz));
        if (!metadata)
            continue;
        CodeObject kernels;
        if (const Msgpack root = parse_msgpack(*metadata); const Msgpack *list = root.find("amdhsa.kernels"))
            for (const Msgpack &item : list->items) {
                auto kernel = std::make_shared<const Kernel>(parse_kernel(item));
                kernels.emplace(kernel->name, kernel);
            }
        return kernels;
    }
    throw std::runtime_error("device code has no AMDGPU metadata note");
}

std::shared_ptr<const CodeObject> load_for_arch(ByteView image, const std::string &arch) {
    if (image.starts_with(elf_magic))
        return std::make_shared<const CodeObject>(parse_code_object(image));
    std::vector<uint8_t> decompressed;
    if (image.starts_with(compressed_bundle_magic)) {
        decompressed = decompress_bundle(image);
        image = {decompressed.data(), decompressed.size()};
    }
    if (!image.starts_with(bundle_magic))
        throw std::runtime_error("neither an offload bundle nor an ELF file");
    const auto found = find_in_bundle(image, arch);
    return found ? std::make_shared<const CodeObject>(parse_code_object(*found)) : nullptr;
}

} // namespace hip_standin
