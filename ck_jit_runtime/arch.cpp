// SPDX-License-Identifier: MIT
#include "arch.h"

#include "ck_jit_tables.h"
#include "environment.h"
#include "failure.h"
#include "lazy.h"

#include <algorithm>
#include <map>

namespace ck_jit {

namespace {

struct TargetId {
    std::string_view processor;
    std::map<std::string_view, char> features; // name to '+' or '-'
};

TargetId parse(std::string_view text) {
    TargetId id;
    id.processor = text.substr(0, text.find(':'));
    for (std::size_t colon = text.find(':'); colon != std::string_view::npos;) {
        const std::size_t next = text.find(':', colon + 1);
        const std::string_view feature = text.substr(colon + 1, next == text.npos ? next : next - colon - 1);
        if (feature.size() > 1)
            id.features[feature.substr(0, feature.size() - 1)] = feature.back();
        colon = next;
    }
    return id;
}

std::string built_for() {
    std::string list;
    for (std::size_t i = 0; i < manifest().arch_count; ++i)
        list += (i ? ", " : "") + std::string(manifest().arches[i]);
    return list;
}

std::string choose_arch() {
    const std::string device = config().arch.empty() ? device_arch() : config().arch;
    if (device.empty())
        throw Failure(
            "no GPU found to compile for; set CK_JIT_ARCH (" +
            (manifest().arch_count ? "this library was built for " + built_for() : "for instance gfx942") +
            ")");
    if (manifest().arch_count == 0)
        return std::string(parse(device).processor);
    std::string best; // the longest is the most specific one
    for (std::size_t i = 0; i < manifest().arch_count; ++i) {
        const std::string arch = manifest().arches[i];
        if (arch_runs_on(arch, device) && arch.size() > best.size())
            best = arch;
    }
    if (best.empty())
        throw Failure((config().arch.empty() ? "the GPU is " : "CK_JIT_ARCH is ") + device +
                      ", but this library was built for " + built_for());
    return best;
}

Lazy<std::string> the_arch;

} // namespace

const std::string &running_arch() { return the_arch.get(choose_arch); }

bool arch_runs_on(std::string_view code, std::string_view device) {
    const TargetId built = parse(code);
    const TargetId have = parse(device);
    return built.processor == have.processor &&
           std::all_of(built.features.begin(), built.features.end(), [&](const auto &feature) {
               const auto other = have.features.find(feature.first);
               return other == have.features.end() || other->second == feature.second;
           });
}

} // namespace ck_jit
