// SPDX-License-Identifier: MIT
#include "request.h"

#include "arch.h"
#include "cache_key.h"
#include "environment.h"
#include "file_io.h"
#include "sha256.h"

namespace ck_jit {

namespace {

struct ManifestRecord {
    std::string source;
    std::string flags;
};

// The record of a blob in the file that CK_JIT_MANIFEST names: "name TAB source TAB flags", closed by a zero
// byte. Empty when there is none; whether that is an error is for the compile script to say.
ManifestRecord find_record(const std::string &name) {
    const std::string records = read_file(config().blob_manifest).value_or("");
    for (std::size_t start = 0; start < records.size();) {
        const std::size_t end = std::min(records.find('\0', start), records.size());
        const std::string record = records.substr(start, end - start);
        const std::size_t tab = record.find('\t');
        const std::size_t second_tab = tab == record.npos ? tab : record.find('\t', tab + 1);
        if (second_tab != record.npos && record.compare(0, tab, name) == 0)
            return {record.substr(tab + 1, second_tab - tab - 1), record.substr(second_tab + 1)};
        start = end + 1;
    }
    return {};
}

std::string named_input_key(const std::string &name, const std::string &arch) {
    const ManifestRecord record = find_record(name);
    const std::string path = record.source.empty() || record.source[0] == '/'
                                 ? record.source
                                 : config().root + "/" + record.source;
    const std::string source = read_file(path).value_or("");
    return input_key(name, source.empty() ? "" : sha256_hex(source), "", record.flags, arch);
}

} // namespace

Request make_request(const Blob &blob) {
    Request request;
    request.blob = blob;
    request.stem = entry_stem(blob.name);
    request.expected.arch = running_arch();
    if (const BlobEntry *entry = blob.entry) {
        request.input_key = input_key(blob.name, entry->source_hash, entry->headers_hash, entry->flags,
                                      request.expected.arch);
        request.expected.symbols = expected_symbols(*entry);
    } else {
        request.input_key = named_input_key(blob.name, request.expected.arch);
        for (std::size_t i = 0; i < manifest().kernel_count; ++i)
            request.expected.prefixes.push_back(manifest().kernels[i].symbol_prefix);
    }
    return request;
}

} // namespace ck_jit
