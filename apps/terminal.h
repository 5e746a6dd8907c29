// What a terminal can show: progress bars on stderr, colours, Ctrl-C as a flag.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace coppice::app {

bool stdout_is_terminal();
bool stderr_is_terminal();
bool stdin_is_terminal();

// A bar on stderr, redrawn in place; nothing where stderr is not a terminal. fraction 1 takes it away.
void show_progress(std::string_view label, double fraction, std::string_view detail = {});
void clear_progress();

// Colours for the sources of tokens; empty strings without `colour`.
std::string_view source_colour(int source);
inline constexpr std::string_view kResetColour = "\x1b[0m";
inline constexpr std::string_view kDim = "\x1b[2m";

// After this Ctrl-C sets a flag; the second one before take_interrupt() ends the program.
void catch_interrupts();
bool interrupted();
void forget_interrupt();

}  // namespace coppice::app
