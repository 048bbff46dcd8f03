#include "modules.h"

#include <cstdio>
#include <exception>
#include <map>
#include <mutex>
#include <unordered_map>

namespace hip_standin {

struct Loaded {
    Lookup result = Lookup::found;
    std::shared_ptr<const CodeObject> kernels;
};

struct Module {
    const void *image = nullptr;
    std::vector<uint8_t> owned_image;
    std::map<std::string, Loaded> by_arch; // guarded by the registry's lock
};

namespace {

struct HostFunction {
    ModuleRef module;
    std::string name;
};

struct Registry {
    std::mutex mutex;
    std::unordered_map<const void *, std::vector<HostFunction>> functions;
};

// Never destroyed: libraries unregister their device code after main has returned.
Registry &registry() {
    static Registry &instance = *new Registry;
    return instance;
}

Loaded load(const Module &module, const std::string &arch) {
    try {
        const size_t size = module.owned_image.empty() ? image_size(module.image) : module.owned_image.size();
        auto kernels = load_for_arch({module.image, size}, arch);
        return {kernels ? Lookup::found : Lookup::no_code_for_arch, kernels};
    } catch (const std::exception &error) {
        std::fprintf(stderr, "hip_standin: device code cannot be read: %s\n", error.what());
        return {Lookup::damaged_image, nullptr};
    }
}

// With the lock held.
KernelLookup find(Module &module, const std::string &name, const std::string &arch) {
    auto loaded = module.by_arch.find(arch);
    if (loaded == module.by_arch.end())
        loaded = module.by_arch.emplace(arch, load(module, arch)).first;
    if (loaded->second.result != Lookup::found)
        return {loaded->second.result, nullptr};
    const auto kernel = loaded->second.kernels->find(name);
    if (kernel == loaded->second.kernels->end())
        return {Lookup::unknown_function, nullptr};
    return {Lookup::found, kernel->second};
}

} // namespace

ModuleRef register_image(const void *image) {
    auto module = std::make_shared<Module>();
    module->image = image;
    return module;
}

ModuleRef load_image(std::vector<uint8_t> owned_image) {
    auto module = std::make_shared<Module>();
    module->owned_image = std::move(owned_image);
    module->image = module->owned_image.data();
    return module;
}

void add_function(const ModuleRef &module, const void *host_function, const std::string &name) {
    const std::lock_guard<std::mutex> lock(registry().mutex);
    registry().functions[host_function].push_back({module, name});
}

void remove_module(const ModuleRef &module) {
    const std::lock_guard<std::mutex> lock(registry().mutex);
    auto &functions = registry().functions;
    for (auto entry = functions.begin(); entry != functions.end();) {
        auto &candidates = entry->second;
        for (auto candidate = candidates.begin(); candidate != candidates.end();)
            candidate = candidate->module == module ? candidates.erase(candidate) : candidate + 1;
        entry = candidates.empty() ? functions.erase(entry) : std::next(entry);
    }
}

KernelLookup find_by_host_function(const void *host_function, const std::string &arch) {
    const std::lock_guard<std::mutex> lock(registry().mutex);
    const auto found = registry().functions.find(host_function);
    if (found == registry().functions.end())
        return {};
    const HostFunction &function = found->second.front();
    return find(*function.module, function.name, arch);
}

KernelLookup find_by_name(const ModuleRef &module, const std::string &name, const std::string &arch) {
    const std::lock_guard<std::mutex> lock(registry().mutex);
    return find(*module, name, arch);
}

} // namespace hip_standin
