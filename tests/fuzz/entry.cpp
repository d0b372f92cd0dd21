// The entry points that libFuzzer calls. Each program contains one fuzz target. `fuzz_<name>
// --seeds DIR` writes the target's seeds to files and does not fuzz.

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include "tests/fuzz/target.hpp"

namespace {

/// Writes the target's seeds. Returns false if a file can't be written. Also returns false if there
/// are no seeds, since the fuzzer would then have no valid input to mutate.
bool write_seeds(const std::filesystem::path& directory) {
  std::filesystem::create_directories(directory);
  std::size_t number = 0;
  for (const auto& seed : reprise::fuzz::Target::first()->seeds()) {
    std::ofstream file(directory / ("seed_" + std::to_string(number++)), std::ios::binary);
    const std::string_view text = reprise::as_text(seed.bytes);
    file.write(text.data(), static_cast<std::streamsize>(text.size()));
    if (!file.flush()) {
      std::fprintf(stderr, "cannot write into %s\n", directory.c_str());
      return false;
    }
  }
  std::printf("%zu seeds\n", number);
  return number > 0;
}

}  // namespace

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv);
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  if (*argc == 3 && std::string_view((*argv)[1]) == "--seeds") {
    std::exit(write_seeds((*argv)[2]) ? EXIT_SUCCESS : EXIT_FAILURE);
  }
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  reprise::fuzz::Target::first()->run({reinterpret_cast<const std::byte*>(data), size});
  return 0;
}
