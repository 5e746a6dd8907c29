#include "terminal.h"

#include <fmt/core.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>

#if defined(_WIN32)
#include <io.h>
#define COPPICE_ISATTY(fd) (_isatty(fd) != 0)
#else
#include <unistd.h>
#define COPPICE_ISATTY(fd) (isatty(fd) != 0)
#endif

namespace coppice::app {
namespace {

constexpr int kBarCells = 30;
bool bar_shown = false;
std::atomic<int> interrupts{0};

void on_interrupt(int) {
  if (interrupts.fetch_add(1) > 0) std::_Exit(130);
}

}  // namespace

bool stdout_is_terminal() { return COPPICE_ISATTY(1); }
bool stderr_is_terminal() { return COPPICE_ISATTY(2); }
bool stdin_is_terminal() { return COPPICE_ISATTY(0); }

void show_progress(std::string_view label, double fraction, std::string_view detail) {
  if (!stderr_is_terminal()) return;
  static auto last = std::chrono::steady_clock::time_point{};
  const auto now = std::chrono::steady_clock::now();
  if (fraction >= 1) return clear_progress();
  if (bar_shown && now - last < std::chrono::milliseconds(50)) return;
  last = now;
  const int full = static_cast<int>(fraction * kBarCells);
  fmt::print(stderr, "\r{} [{:=<{}}{: <{}}] {:3.0f}% {}\x1b[K", label, "", full, "", kBarCells - full,
             fraction * 100, detail);
  std::fflush(stderr);
  bar_shown = true;
}

void clear_progress() {
  if (!bar_shown) return;
  fmt::print(stderr, "\r\x1b[K");
  std::fflush(stderr);
  bar_shown = false;
}

std::string_view source_colour(int source) {
  // Green, cyan, yellow, magenta, blue; what the target drew unaided stays as it is.
  constexpr std::string_view kColours[] = {"\x1b[32m", "\x1b[36m", "\x1b[33m", "\x1b[35m", "\x1b[34m"};
  if (source < 0) return {};
  return kColours[source % 5];
}

void catch_interrupts() { std::signal(SIGINT, on_interrupt); }
bool interrupted() { return interrupts.load() > 0; }
void forget_interrupt() { interrupts = 0; }

}  // namespace coppice::app
