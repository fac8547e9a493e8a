weir_test(NAME base_values_test LABEL unit SOURCES base_values_test.cc DEPS base)
weir_test(NAME base_system_clock_test LABEL unit SOURCES base_system_clock_test.cc DEPS base)
