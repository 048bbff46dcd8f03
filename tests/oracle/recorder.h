// What both dispatchers call instead of kernels: functions with the kernels' exact symbols, each of which
// notes its number and returns a value that depends on it.
#pragma once

#include <string>
#include <vector>

namespace oracle {

// Numbers of the kernels called since it was emptied.
std::vector<int> &calls();

// Defined by the generated table: symbol and blob of each number.
extern const char *const symbols[];
extern const char *const blobs[];
extern const int symbol_count;

// Number of a symbol, -1 if it is none.
int number_of(const std::string &symbol);

} // namespace oracle
