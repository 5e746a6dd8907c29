#include "terminal.h"

#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>

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
int lost_output = 0;  // errno of the first write to stdout that failed
std::atomic<int> interrupts{0};

void on_interrupt(int) {
  if (interrupts.fetch_add(1) > 0) std::_Exit(130);
}

// At most twenty times a second.
bool time_to_draw() {
  static auto last = std::chrono::steady_clock::time_point{};
  const auto now = std::chrono::steady_clock::now();
  if (bar_shown && now - last < std::chrono::milliseconds(50)) return false;
  last = now;
  bar_shown = true;
  return true;
}

void draw(std::string_view line) {
  note("\r{}\x1b[K", line);
  std::fflush(stderr);
}

bool stderr_paints() { return stderr_is_terminal() && colours_wanted(); }

}  // namespace

void write_out(std::string_view text) {
  if (lost_output != 0 || text.empty()) return;
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size()) lost_output = errno != 0 ? errno : EIO;
}

void flush_out() {
  if (lost_output == 0 && std::fflush(stdout) != 0) lost_output = errno != 0 ? errno : EIO;
}

bool output_lost() { return lost_output != 0; }
std::string output_error() { return lost_output == 0 ? "" : std::strerror(lost_output); }

void write_note(std::string_view text) { std::fwrite(text.data(), 1, text.size(), stderr); }

bool stdout_is_terminal() { return COPPICE_ISATTY(1); }
bool stderr_is_terminal() { return COPPICE_ISATTY(2); }
bool stdin_is_terminal() { return COPPICE_ISATTY(0); }

void show_progress(std::string_view label, double fraction, std::string_view detail) {
  if (!stderr_is_terminal()) return;
  if (fraction >= 1) return clear_progress();
  if (!time_to_draw()) return;
  const int full = static_cast<int>(fraction * kBarCells);
  draw(fmt::format("{} [{:=<{}}{: <{}}] {:3.0f}% {}", label, "", full, "", kBarCells - full, fraction * 100,
                   detail));
}

void show_count(std::string_view label, std::string_view detail) {
  constexpr std::string_view kSpinner = "|/-\\";
  static std::size_t turn = 0;
  if (!stderr_is_terminal() || !time_to_draw()) return;
  draw(fmt::format("{} {} {}", label, kSpinner[turn++ % kSpinner.size()], detail));
}

void clear_progress() {
  if (!bar_shown) return;
  draw("");
  bar_shown = false;
}

bool colours_wanted() {
  const char* no = std::getenv("NO_COLOR");
  return no == nullptr || *no == 0;
}

std::string_view source_colour(int source) {
  // Green, cyan, yellow, magenta, blue; what the target drew unaided stays as it is.
  constexpr std::string_view kColours[] = {"\x1b[32m", "\x1b[36m", "\x1b[33m", "\x1b[35m", "\x1b[34m"};
  if (source < 0 || !colours_wanted()) return {};
  return kColours[source % 5];
}

std::string_view dim() { return stderr_paints() ? "\x1b[2m" : ""; }
std::string_view undim() { return stderr_paints() ? kResetColour : ""; }

void catch_interrupts() {
#if defined(_WIN32)
  std::signal(SIGINT, on_interrupt);
#else
  struct sigaction action {};  // without SA_RESTART: Ctrl-C ends a read of the keyboard
  action.sa_handler = on_interrupt;
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, nullptr);
#endif
}

void catch_termination() {
#if defined(_WIN32)
  std::signal(SIGTERM, on_interrupt);
#else
  struct sigaction action {};
  action.sa_handler = on_interrupt;
  sigemptyset(&action.sa_mask);
  sigaction(SIGTERM, &action, nullptr);
#endif
}

bool interrupted() { return interrupts.load() > 0; }
void forget_interrupt() { interrupts = 0; }

void set_up_signals() {
#if !defined(_WIN32)
  std::signal(SIGPIPE, SIG_DFL);
  std::signal(SIGXFSZ, SIG_IGN);
#endif
}

}  // namespace coppice::app
