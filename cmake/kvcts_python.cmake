# KVCTS_PYTHON, and KVCTS_HAVE_H5PY where it has h5py and numpy. Debian's own before another.
find_program(KVCTS_PYTHON NAMES python3 PATHS /usr/bin NO_DEFAULT_PATH)
find_program(KVCTS_PYTHON NAMES python3)
set(KVCTS_HAVE_H5PY OFF)
if(KVCTS_PYTHON)
  execute_process(COMMAND ${KVCTS_PYTHON} -c "import h5py, numpy" RESULT_VARIABLE h5py_status
                  OUTPUT_QUIET ERROR_QUIET)
  if(h5py_status EQUAL 0)
    set(KVCTS_HAVE_H5PY ON)
  endif()
endif()
