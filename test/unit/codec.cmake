weir_test(NAME codec_test LABEL unit DEPS codec
  SOURCES codec_check_test.cc codec_envelope_test.cc codec_record_test.cc codec_register_test.cc
)
target_compile_definitions(codec_test PRIVATE WEIR_VECTORS_DIR="${PROJECT_SOURCE_DIR}/test/vectors")
