#include "decompress.h"

#include <dlfcn.h>

namespace hip_standin {
namespace {

struct Header {
    uint16_t method = 0; // LLVM's compression::Format: 0 zlib, 1 zstd
    uint64_t total_size = 0;
    uint64_t bundle_size = 0;
    uint64_t header_size = 0;
};

Header read_header(ByteView bundle) {
    const auto version = bundle.read<uint16_t>(4);
    Header header;
    header.method = bundle.read<uint16_t>(6);
    if (version == 2) {
        header.total_size = bundle.read<uint32_t>(8);
        header.bundle_size = bundle.read<uint32_t>(12);
        header.header_size = 24; // with the 8 bytes of a hash
    } else if (version == 3) {
        header.total_size = bundle.read<uint64_t>(8);
        header.bundle_size = bundle.read<uint64_t>(16);
        header.header_size = 32;
    } else {
        throw std::runtime_error("compressed offload bundle of version " + std::to_string(version) +
                                 ": 2 and 3 can be read; compile without --offload-compress");
    }
    return header;
}

void *find_symbol(const char *library, const char *symbol) {
    void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    void *address = handle ? dlsym(handle, symbol) : nullptr;
    if (!address)
        throw std::runtime_error(std::string("compressed offload bundle: no ") + symbol + " in " + library +
                                 "; install it or compile without --offload-compress");
    return address;
}

} // namespace

size_t compressed_bundle_size(ByteView bundle) { return read_header(bundle).total_size; }

std::vector<uint8_t> decompress_bundle(ByteView bundle) {
    const Header header = read_header(bundle);
    if (header.total_size < header.header_size)
        throw std::runtime_error("compressed offload bundle is damaged");
    const ByteView stream = bundle.slice(header.header_size, header.total_size - header.header_size);
    std::vector<uint8_t> result(header.bundle_size);
    size_t written = 0;
    if (header.method == 0) {
        using Uncompress = int (*)(uint8_t *, unsigned long *, const uint8_t *, unsigned long);
        auto uncompress = reinterpret_cast<Uncompress>(find_symbol("libz.so.1", "uncompress"));
        unsigned long size = result.size();
        written = uncompress(result.data(), &size, stream.data(), stream.size()) == 0 ? size : 0;
    } else if (header.method == 1) {
        using Decompress = size_t (*)(void *, size_t, const void *, size_t);
        auto decompress = reinterpret_cast<Decompress>(find_symbol("libzstd.so.1", "ZSTD_decompress"));
        // An error is a huge number, so it differs from the size too.
        written = decompress(result.data(), result.size(), stream.data(), stream.size());
    } else {
        throw std::runtime_error("compressed offload bundle uses an unknown method");
    }
    if (written != result.size())
        throw std::runtime_error("compressed offload bundle is damaged");
    return result;
}

} // namespace hip_standin
