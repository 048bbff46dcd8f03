// Device code and launches.
#include "device.h"
#include "hip_api.h"
#include "modules.h"
#include "recorder.h"
#include "stream.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <map>
#include <mutex>
#include <vector>

using hip_standin::find_stream;
using hip_standin::hip_call;
using hip_standin::KernelLookup;
using hip_standin::LaunchArguments;
using hip_standin::Lookup;
using hip_standin::ModuleRef;
using hip_standin::RunOn;

namespace {

constexpr uint32_t max_block_threads = 1024;

// What clang puts into .hipFatBinSegment.
struct FatBinaryWrapper {
    uint32_t magic;
    uint32_t version;
    const void *binary;
    const void *unused;
};
constexpr uint32_t fat_binary_magic = 0x48495046; // "HIPF"

struct CallConfiguration {
    dim3 grid;
    dim3 block;
    size_t shared_bytes = 0;
    hipStream_t stream = nullptr;
};

// kernel<<<...>>> pushes it, the kernel's host stub pops it. Arguments of the call may launch kernels
// themselves.
thread_local std::vector<CallConfiguration> call_configurations;

hipError_t error_of(Lookup result, hipError_t unknown_function) {
    switch (result) {
    case Lookup::found:
        return hipSuccess;
    case Lookup::unknown_function:
        return unknown_function;
    case Lookup::no_code_for_arch:
        return hipErrorNoBinaryForGpu;
    case Lookup::damaged_image:
        return hipErrorInvalidImage;
    }
    return hipErrorUnknown;
}

hipError_t check_shape(const dim3 &grid, const dim3 &block) {
    const uint64_t threads = uint64_t{block.x} * block.y * block.z;
    if (grid.x == 0 || grid.y == 0 || grid.z == 0 || threads == 0 || threads > max_block_threads)
        return hipErrorInvalidConfiguration;
    return hipSuccess;
}

hipError_t launch(const KernelLookup &lookup, const CallConfiguration &call,
                  const LaunchArguments &arguments) {
    if (const hipError_t error = error_of(lookup.result, hipErrorInvalidDeviceFunction); error != hipSuccess)
        return error;
    if (const hipError_t error = check_shape(call.grid, call.block); error != hipSuccess)
        return error;
    const auto stream = find_stream(call.stream);
    if (!stream)
        return hipErrorInvalidHandle;
    hip_standin::Launch record;
    record.grid = {call.grid.x, call.grid.y, call.grid.z};
    record.block = {call.block.x, call.block.y, call.block.z};
    record.dynamic_shared_bytes = static_cast<uint32_t>(call.shared_bytes);
    record.stream = hip_standin::stream_number(stream);
    record.device = hip_standin::stream_device(stream);
    record.arch = hip_standin::device(record.device).arch;
    // Recorded when it is asked for, in the caller's order; the kernel's place in the stream is kept for what
    // follows it.
    hip_standin::record_launch(record, *lookup.kernel, arguments);
    submit(stream, RunOn::caller_if_idle, [] {});
    return hipSuccess;
}

// The architecture that a launch on a stream is for.
hipError_t arch_of(hipStream_t handle, std::string &arch) {
    if (!hip_standin::device_count())
        return hipErrorNoDevice;
    const auto stream = find_stream(handle);
    if (!stream)
        return hipErrorInvalidHandle;
    arch = hip_standin::device(hip_standin::stream_device(stream)).arch;
    return hipSuccess;
}

hipError_t launch_host_function(const void *function, const CallConfiguration &call, void **arguments) {
    std::string arch;
    if (const hipError_t error = arch_of(call.stream, arch); error != hipSuccess)
        return error;
    LaunchArguments where;
    // A kernel without arguments may be launched with none.
    void *no_arguments[1] = {};
    where.pointers = arguments ? arguments : no_arguments;
    return launch(hip_standin::find_by_host_function(function, arch), call, where);
}

KernelLookup find_on_current_device(const void *function) {
    return hip_standin::find_by_host_function(function,
                                              hip_standin::device(hip_standin::current_device()).arch);
}

// hipModule_t and hipFunction_t are addresses of these.
struct Function {
    ModuleRef module;
    std::string name;
};

struct Handles {
    std::mutex mutex;
    std::map<void *, ModuleRef> modules;
    std::map<void *, Function> functions;
};

// Never destroyed, as all that other libraries' destructors may still call.
Handles &handles() {
    static Handles &instance = *new Handles;
    return instance;
}

hipError_t load_module(hipModule_t *handle, std::vector<uint8_t> image) {
    const ModuleRef module = hip_standin::load_image(std::move(image));
    const std::string arch = hip_standin::device(hip_standin::current_device()).arch;
    // HIP finds out at once whether there is code for the device; which kernels there are does not matter
    // yet.
    const Lookup result = hip_standin::find_by_name(module, "", arch).result;
    if (result != Lookup::unknown_function)
        return error_of(result, hipErrorInvalidImage);
    *handle = reinterpret_cast<hipModule_t>(module.get());
    const std::lock_guard<std::mutex> lock(handles().mutex);
    handles().modules[module.get()] = module;
    return hipSuccess;
}

hipError_t load_module_data(hipModule_t *handle, const void *image) {
    if (!handle || !image)
        return hipErrorInvalidValue;
    if (!hip_standin::device_count())
        return hipErrorNoDevice;
    const auto *bytes = static_cast<const uint8_t *>(image);
    return load_module(handle, {bytes, bytes + hip_standin::image_size(image)});
}

// hipModuleLaunchKernel's "extra": a list of markers and values.
hipError_t read_extra(void **extra, LaunchArguments &arguments) {
    const void *buffer = nullptr;
    size_t size = 0;
    while (*extra != HIP_LAUNCH_PARAM_END) {
        if (*extra == HIP_LAUNCH_PARAM_BUFFER_POINTER)
            buffer = extra[1];
        else if (*extra == HIP_LAUNCH_PARAM_BUFFER_SIZE)
            size = *static_cast<size_t *>(extra[1]);
        else
            return hipErrorInvalidValue;
        extra += 2;
    }
    arguments.buffer = {buffer, size};
    return buffer || size == 0 ? hipSuccess : hipErrorInvalidValue;
}

// As many blocks as threads and shared memory leave room for; a real device counts registers too.
int blocks_per_compute_unit(const hip_standin::Kernel &kernel, int block_size, size_t dynamic_shared_bytes) {
    constexpr int threads_per_compute_unit = 2048;
    const hip_standin::Device device = hip_standin::device(hip_standin::current_device());
    const int warps = (block_size + device.warp_size - 1) / device.warp_size;
    int blocks = threads_per_compute_unit / (warps * device.warp_size);
    const size_t shared = kernel.static_shared_bytes + dynamic_shared_bytes;
    if (shared)
        blocks =
            std::min(blocks, static_cast<int>(static_cast<size_t>(device.shared_bytes_per_block) / shared));
    return blocks;
}

} // namespace

extern "C" {

// Called by the code that clang generates; no header declares all of them.
void **__hipRegisterFatBinary(const void *data);
void __hipUnregisterFatBinary(void **handle);
void __hipRegisterFunction(void **handle, const void *host_function, char *device_function,
                           const char *device_name, unsigned thread_limit, void *, void *, void *, void *,
                           int *);
void __hipRegisterVar(void **, void *, char *, char *, int, size_t, int, int);
void __hipRegisterManagedVar(void **, void **, void *, const char *, size_t, unsigned);
hipError_t __hipPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared_bytes, hipStream_t *stream);

void **__hipRegisterFatBinary(const void *data) {
    const auto *wrapper = static_cast<const FatBinaryWrapper *>(data);
    if (!wrapper || wrapper->magic != fat_binary_magic || wrapper->version != 1) {
        std::fprintf(stderr, "hip_standin: a library registers device code that is no HIP fat binary\n");
        return nullptr;
    }
    return reinterpret_cast<void **>(new ModuleRef(hip_standin::register_image(wrapper->binary)));
}

void __hipUnregisterFatBinary(void **handle) {
    if (!handle)
        return;
    auto *module = reinterpret_cast<ModuleRef *>(handle);
    hip_standin::remove_module(*module);
    delete module;
}

void __hipRegisterFunction(void **handle, const void *host_function, char *, const char *device_name,
                           unsigned, void *, void *, void *, void *, int *) {
    if (handle)
        hip_standin::add_function(*reinterpret_cast<ModuleRef *>(handle), host_function, device_name);
}

// No kernel runs, so nothing reads device variables.
void __hipRegisterVar(void **, void *, char *, char *, int, size_t, int, int) {}

// Host code reads a managed variable through the pointer, so it needs somewhere to point: its initial value.
void __hipRegisterManagedVar(void **, void **pointer, void *initial_value, const char *, size_t, unsigned) {
    *pointer = initial_value;
}

hipError_t __hipPushCallConfiguration(dim3 grid, dim3 block, size_t shared_bytes, hipStream_t stream) {
    return hip_call("__hipPushCallConfiguration", [&] {
        call_configurations.push_back({grid, block, shared_bytes, stream});
        return hipSuccess;
    });
}

hipError_t __hipPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared_bytes, hipStream_t *stream) {
    return hip_call("__hipPopCallConfiguration", [&] {
        if (call_configurations.empty())
            return hipErrorMissingConfiguration;
        const CallConfiguration call = call_configurations.back();
        call_configurations.pop_back();
        *grid = call.grid;
        *block = call.block;
        *shared_bytes = call.shared_bytes;
        *stream = call.stream;
        return hipSuccess;
    });
}

hipError_t hipLaunchKernel(const void *function, dim3 grid, dim3 block, void **arguments, size_t shared_bytes,
                           hipStream_t stream) {
    return hip_call("hipLaunchKernel", [&] {
        return launch_host_function(function, {grid, block, shared_bytes, stream}, arguments);
    });
}

hipError_t hipExtLaunchKernel(const void *function, dim3 grid, dim3 block, void **arguments,
                              size_t shared_bytes, hipStream_t stream, hipEvent_t start, hipEvent_t stop,
                              int) {
    return hip_call("hipExtLaunchKernel", [&] {
        if (start)
            if (const hipError_t error = hipEventRecord(start, stream); error != hipSuccess)
                return error;
        const hipError_t error =
            launch_host_function(function, {grid, block, shared_bytes, stream}, arguments);
        if (error != hipSuccess || !stop)
            return error;
        return hipEventRecord(stop, stream);
    });
}

hipError_t hipLaunchCooperativeKernel(const void *function, dim3 grid, dim3 block, void **arguments,
                                      unsigned shared_bytes, hipStream_t stream) {
    return hip_call("hipLaunchCooperativeKernel", [&] {
        return launch_host_function(function, {grid, block, shared_bytes, stream}, arguments);
    });
}

hipError_t hipModuleLoadData(hipModule_t *module, const void *image) {
    return hip_call("hipModuleLoadData", [&] { return load_module_data(module, image); });
}

hipError_t hipModuleLoadDataEx(hipModule_t *module, const void *image, unsigned, hipJitOption *, void **) {
    return hip_call("hipModuleLoadDataEx", [&] { return load_module_data(module, image); });
}

hipError_t hipModuleLoad(hipModule_t *module, const char *path) {
    return hip_call("hipModuleLoad", [&] {
        if (!module || !path)
            return hipErrorInvalidValue;
        if (!hip_standin::device_count())
            return hipErrorNoDevice;
        std::ifstream file(path, std::ios::binary);
        if (!file)
            return hipErrorFileNotFound;
        std::vector<uint8_t> image{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
        return image.empty() ? hipErrorInvalidImage : load_module(module, std::move(image));
    });
}

hipError_t hipModuleUnload(hipModule_t handle) {
    return hip_call("hipModuleUnload", [&] {
        const std::lock_guard<std::mutex> lock(handles().mutex);
        const auto found = handles().modules.find(handle);
        if (found == handles().modules.end())
            return hipErrorInvalidHandle;
        auto &functions = handles().functions;
        for (auto function = functions.begin(); function != functions.end();)
            function =
                function->second.module == found->second ? functions.erase(function) : std::next(function);
        handles().modules.erase(found);
        return hipSuccess;
    });
}

hipError_t hipModuleGetFunction(hipFunction_t *function, hipModule_t handle, const char *name) {
    return hip_call("hipModuleGetFunction", [&] {
        if (!function || !name)
            return hipErrorInvalidValue;
        const std::lock_guard<std::mutex> lock(handles().mutex);
        const auto module = handles().modules.find(handle);
        if (module == handles().modules.end())
            return hipErrorInvalidHandle;
        const std::string arch = hip_standin::device(hip_standin::current_device()).arch;
        const KernelLookup lookup = hip_standin::find_by_name(module->second, name, arch);
        if (lookup.result != Lookup::found)
            return error_of(lookup.result, hipErrorNotFound);
        // One kernel has one address for as long as its module is loaded.
        auto *key = const_cast<hip_standin::Kernel *>(lookup.kernel.get());
        handles().functions[key] = {module->second, name};
        *function = reinterpret_cast<hipFunction_t>(key);
        return hipSuccess;
    });
}

hipError_t hipModuleLaunchKernel(hipFunction_t handle, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                                 unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
                                 hipStream_t stream, void **parameters, void **extra) {
    return hip_call("hipModuleLaunchKernel", [&] {
        Function function;
        {
            const std::lock_guard<std::mutex> lock(handles().mutex);
            const auto found = handles().functions.find(handle);
            if (found == handles().functions.end())
                return hipErrorInvalidHandle;
            function = found->second;
        }
        LaunchArguments arguments;
        arguments.pointers = parameters;
        if (parameters && extra)
            return hipErrorInvalidValue;
        if (extra)
            if (const hipError_t error = read_extra(extra, arguments); error != hipSuccess)
                return error;
        std::string arch;
        if (const hipError_t error = arch_of(stream, arch); error != hipSuccess)
            return error;
        const KernelLookup lookup = hip_standin::find_by_name(function.module, function.name, arch);
        return launch(lookup, {{grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, shared_bytes, stream},
                      arguments);
    });
}

hipError_t hipFuncGetAttributes(hipFuncAttributes *attributes, const void *function) {
    return hip_call("hipFuncGetAttributes", [&] {
        if (!attributes)
            return hipErrorInvalidValue;
        if (!hip_standin::device_count())
            return hipErrorNoDevice;
        const KernelLookup lookup = find_on_current_device(function);
        if (lookup.result != Lookup::found)
            return error_of(lookup.result, hipErrorInvalidDeviceFunction);
        *attributes = {};
        attributes->localSizeBytes = lookup.kernel->private_bytes;
        attributes->sharedSizeBytes = lookup.kernel->static_shared_bytes;
        attributes->numRegs = static_cast<int>(lookup.kernel->vector_registers);
        attributes->maxThreadsPerBlock = static_cast<int>(lookup.kernel->max_block_size);
        attributes->maxDynamicSharedSizeBytes =
            hip_standin::device(hip_standin::current_device()).shared_bytes_per_block -
            static_cast<int>(lookup.kernel->static_shared_bytes);
        return hipSuccess;
    });
}

hipError_t hipFuncSetAttribute(const void *function, hipFuncAttribute, int) {
    return hip_call("hipFuncSetAttribute", [&] {
        if (!hip_standin::device_count())
            return hipErrorNoDevice;
        return error_of(find_on_current_device(function).result, hipErrorInvalidDeviceFunction);
    });
}

hipError_t hipOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, const void *function, int block_size,
                                                        size_t dynamic_shared_bytes) {
    return hip_call("hipOccupancyMaxActiveBlocksPerMultiprocessor", [&] {
        if (!blocks || block_size <= 0)
            return hipErrorInvalidValue;
        if (!hip_standin::device_count())
            return hipErrorNoDevice;
        const KernelLookup lookup = find_on_current_device(function);
        if (lookup.result != Lookup::found)
            return error_of(lookup.result, hipErrorInvalidDeviceFunction);
        *blocks = blocks_per_compute_unit(*lookup.kernel, block_size, dynamic_shared_bytes);
        return hipSuccess;
    });
}

hipError_t hipOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks, const void *function,
                                                                 int block_size, size_t dynamic_shared_bytes,
                                                                 unsigned) {
    return hipOccupancyMaxActiveBlocksPerMultiprocessor(blocks, function, block_size, dynamic_shared_bytes);
}
}
