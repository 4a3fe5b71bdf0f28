// Writing to stdout so that nothing is lost silently, and notes on stderr.
#pragma once

#include <string>
#include <string_view>

namespace wisp::cli {

// The reader of stdout has gone: the program ends without a word.
struct BrokenPipe {};

// Writes to stdout, buffered. Throws Error when it cannot be written, BrokenPipe when nobody reads.
void print(std::string_view text);
// Hands over what was printed; throws as print does.
void flush();

// One line on stderr.
void note(std::string_view line);

// `text` without what would break or garble a line: line breaks and other control characters become
// spaces, what is not UTF-8 becomes U+FFFD.
std::string one_line(std::string_view text);

// Takes the numbers of stdin, stdout and stderr where they are closed, so that no file that is
// opened later gets them and, with them, what is meant for the terminal.
void open_closed_files();

// Whether a person looks at it.
bool stdin_is_terminal();
bool stdout_is_terminal();
bool stderr_is_terminal();

}  // namespace wisp::cli
