// vectors/hdf5_tree.h over a tree in memory: the schema's reader without HDF5.
#pragma once

#include <string_view>

namespace kvcts::fuzz {

// What every file is from now on. A line is an object or an attribute of the last object:
//   g NAME            a group, inside the open one; it is open now
//   d NAME TYPE DIMS  a dataset inside the open group; TYPE is i1 i2 i4 i8, u1 ..., e1 (an
//                     enumeration), f4 f8, t (text), o (another); "-" for DIMS: no shape
//   = NUMBERS         its elements, from the first on again where they end
//   s NAME TEXTS      an attribute of texts; i NAME NUMBERS, u (unsigned), r (reals), o (another)
//   .                 closes the open group
// Lines that do not read so are passed over.
void set_tree(std::string_view text);

}  // namespace kvcts::fuzz
