// Files of reports/ that report.html is made of, as the program carries them.
#pragma once

namespace kvcts {

extern const char* const embedded_page;    // report.html.in
extern const char* const embedded_style;   // report.css
extern const char* const embedded_script;  // report.js

}  // namespace kvcts
