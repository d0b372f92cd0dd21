#include "tests/models/cuda/warp.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <utility>

#include "core/base/check.hpp"
#include "sim/fibers/fiber.hpp"

namespace reprise::models {
namespace {

constexpr unsigned kLanes = 32;
constexpr std::size_t kShuffleBytes = 8;  // a register or two, as on hardware

unsigned nth(unsigned turn, unsigned count, Threads order) {
  return order == Threads::kForwards ? turn : count - 1 - turn;
}

/// The lanes of one warp, used again for each warp of each kernel.
class Warp {
 public:
  Warp() {
    for (unsigned lane = 0; lane < kLanes; ++lane) {
      fibers_[lane] = std::make_unique<sim::Fiber>([this, lane] { live(lane); });
    }
    // Takes the stacks now: what keeps them for the thread must outlive this object.
    run(0, kLanes, Threads::kForwards, [] {});
  }

  /// Runs `lanes` lanes; the first is thread `thread` of its block.
  void run(unsigned thread, unsigned lanes, Threads order, const std::function<void()>& body) {
    body_ = &body;
    lanes_ = lanes;
    first_ = thread;
    running_ = (lanes == kLanes ? ~0U : (1U << lanes) - 1U);
    shuffles_ = {};
    while (running_ != 0) {
      const unsigned before = running_;
      for (unsigned turn = 0; turn < lanes; ++turn) {
        const unsigned lane = nth(turn, lanes, order);
        if ((before >> lane & 1U) == 0) continue;
        threadIdx.x = first_ + lane;
        current_ = lane;
        fibers_[lane]->resume();
      }
      // On hardware a shuffle waits for all lanes of its mask.
      if (running_ != 0 && running_ != before) diverged_ = true;
    }
  }

  void shuffle(void* value, std::size_t size, unsigned ahead) {
    CHECK(size <= kShuffleBytes, size);
    const unsigned lane = current_;
    const unsigned turn = shuffles_[lane]++ % 2;
    std::memcpy(given_[turn][lane].data(), value, size);
    fibers_[lane]->suspend();
    if (lane + ahead < lanes_) std::memcpy(value, given_[turn][lane + ahead].data(), size);
  }

  bool diverged() { return std::exchange(diverged_, false); }

 private:
  void live(unsigned lane) {
    while (true) {
      (*body_)();
      running_ &= ~(1U << lane);
      fibers_[lane]->suspend();
    }
  }

  std::array<std::unique_ptr<sim::Fiber>, kLanes> fibers_;
  const std::function<void()>* body_ = nullptr;
  unsigned lanes_ = 0;
  unsigned first_ = 0;
  unsigned running_ = 0;  ///< bits of the lanes that have not ended
  unsigned current_ = 0;
  bool diverged_ = false;
  std::array<unsigned, kLanes> shuffles_ = {};
  /// Values of the last two shuffles: a lane may give its next one before others took this one.
  std::array<std::array<std::array<std::byte, kShuffleBytes>, kLanes>, 2> given_ = {};
};

Warp& warp() {
  static thread_local Warp one;
  return one;
}

}  // namespace

std::string run_grid(dim3 grid, dim3 block, Threads order, const std::function<void()>& body) {
  gridDim = grid;
  blockDim = block;
  const unsigned warps = (block.x + kLanes - 1) / kLanes;
  for (unsigned turn = 0; turn < grid.x * warps; ++turn) {
    const unsigned at = nth(turn, grid.x * warps, order);
    blockIdx.x = at / warps;
    const unsigned thread = at % warps * kLanes;
    warp().run(thread, std::min(kLanes, block.x - thread), order, body);
  }
  return warp().diverged() ? "a lane ended while others of its warp waited in a shuffle" : "";
}

void shuffle_down(void* value, std::size_t size, int ahead) {
  warp().shuffle(value, size, static_cast<unsigned>(ahead));
}

}  // namespace reprise::models
