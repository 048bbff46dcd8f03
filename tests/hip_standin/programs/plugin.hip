// A library with a kernel, built twice with the same kernel to be loaded and unloaded.
#include <hip/hip_runtime.h>

__global__ void shared_kernel(int *to, int value) { *to = value; }

extern "C" int launch_plugin(int value) {
    shared_kernel<<<1, 64>>>(nullptr, value);
    return hipGetLastError();
}

extern "C" const void *plugin_kernel() { return reinterpret_cast<const void *>(shared_kernel); }
