// What a terminal can show: the answer on stdout and everything else on stderr, progress bars, colours,
// Ctrl-C as a flag.
#pragma once

#include <fmt/core.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace coppice::app {

// To stdout. A full disk or a closed pipe is remembered, not thrown: long work asks output_lost() and stops,
// and main() says why.
void write_out(std::string_view text);
void flush_out();
bool output_lost();
std::string output_error();  // "No space left on device"; empty while all is well

// To stderr; what cannot be said there is lost.
void write_note(std::string_view text);

template <class... Arguments>
void say(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
  write_out(fmt::format(format, std::forward<Arguments>(arguments)...));
}

template <class... Arguments>
void note(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
  write_note(fmt::format(format, std::forward<Arguments>(arguments)...));
}

bool stdout_is_terminal();
bool stderr_is_terminal();
bool stdin_is_terminal();

// A bar on stderr, redrawn in place; nothing where stderr is not a terminal. fraction 1 takes it away.
void show_progress(std::string_view label, double fraction, std::string_view detail = {});
// The same where nobody knows how much there is: a count that moves.
void show_count(std::string_view label, std::string_view detail);
void clear_progress();

// Colours for the sources of tokens. Nothing is painted where NO_COLOR is set (no-color.org).
bool colours_wanted();
std::string_view source_colour(int source);
inline constexpr std::string_view kResetColour = "\x1b[0m";
// Dimmed text on stderr; empty where stderr is no terminal or NO_COLOR is set.
std::string_view dim();
std::string_view undim();

// After this Ctrl-C sets a flag (and ends a read of the keyboard); the second one before forget_interrupt()
// ends the program.
void catch_interrupts();
void catch_termination();  // the same for SIGTERM
bool interrupted();
void forget_interrupt();
// A reader that went away (| head) ends the program quietly, whatever the parent process set up; a file that
// may not grow further (ulimit -f) is an error like a full disk.
void set_up_signals();

}  // namespace coppice::app
