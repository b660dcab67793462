#pragma once
// The end of the program when memory runs out.

namespace ganymede {

/// Keeps a mebibyte aside for the first allocation by `new` that fails, so that code which may not throw, such as the
/// destructors of the JSON library, which take memory themselves, can go on, and what comes next can end in order.
/// Where memory is lacking after that and nothing may be thrown, the program says so, removes the files that it was
/// writing and ends with exit code 1 instead of a signal. Further calls fill the reserve again if it was used.
void keep_memory_reserve();

}  // namespace ganymede
