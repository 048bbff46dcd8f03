// What every file that implements part of HIP's interface includes: the interface, and the guard around each
// function.
#pragma once

#include <hip/hip_runtime_api.h>

#include <cstdio>
#include <exception>
#include <new>
#include <stdexcept>

namespace hip_standin {

// As HIP keeps it: one per thread, until hipGetLastError reads it. "Not ready" is an answer and no error.
hipError_t remember(hipError_t error);

// Runs the body of one HIP function. Nothing may be thrown through a C interface.
template <typename Body> hipError_t hip_call(const char *function, Body body) {
    try {
        return remember(body());
    } catch (const std::bad_alloc &) {
        return remember(hipErrorOutOfMemory);
    } catch (const std::exception &error) {
        std::fprintf(stderr, "hip_standin: %s: %s\n", function, error.what());
        return remember(hipErrorUnknown);
    }
}

} // namespace hip_standin
