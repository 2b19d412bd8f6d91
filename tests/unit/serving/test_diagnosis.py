import pytest

from pagemill.serving.diagnosis import StartFailure, diagnose, exceptions


@pytest.mark.parametrize(
    ("line", "cause"),
    [
        ("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.", StartFailure.DEVICE_MEMORY),
        (
            "ValueError: Free memory on device cuda:0 (3.1/23.0 GiB) on startup is less than desired GPU memory "
            "utilization (0.8, 18.4 GiB).",
            StartFailure.DEVICE_MEMORY,
        ),
        ("ValueError: No available memory for the cache blocks. Try increasing", StartFailure.CACHE_MEMORY),
        ("(2.0 GiB KV cache is needed, which is larger than the available KV cache memory", StartFailure.CACHE_MEMORY),
        ("OSError: [Errno 98] Address already in use", StartFailure.PORT),
        ("vllm: error: unrecognized arguments: --swap-space 4", StartFailure.ARGUMENT),
        ("OSError: x/y is not a local folder and is not a valid model identifier listed on", StartFailure.MODEL),
        ("huggingface_hub.errors.GatedRepoError: 403 Client Error. Cannot access gated repo", StartFailure.MODEL),
        ("OSError: We couldn't connect to 'https://huggingface.co' to load the files", StartFailure.NETWORK),
        ("ValueError: Bfloat16 is only supported on GPUs with compute capability of at least 8.0", StartFailure.DTYPE),
        ("ValueError: The quantization method fp8 is not supported. Minimum capability: 75.", StartFailure.DTYPE),
        ("RuntimeError: Failed to infer device type, please set", StartFailure.DEVICE),
        ("OSError: [Errno 28] No space left on device", StartFailure.DISK),
        ("ValueError: something new", StartFailure.UNKNOWN),
    ],
)
def test_a_cause_is_known_by_its_words(line: str, cause: StartFailure):
    found = diagnose(["INFO begin", line, "RuntimeError: Engine core initialization failed. See root cause above."])
    assert found is cause
    assert found.remedy.endswith(".")


def test_the_line_nearest_to_the_end_decides():
    assert diagnose(["CUDA out of memory", "Address already in use"]) is StartFailure.PORT


def test_a_kill_without_words_is_the_machines_memory():
    assert diagnose(["INFO loading"], -9) is StartFailure.HOST_MEMORY
    assert diagnose(["CUDA out of memory"], -9) is StartFailure.DEVICE_MEMORY


def test_one_that_said_nothing_may_not_be_vllm():
    found = diagnose([], 0)
    assert found is StartFailure.SILENT
    assert "--vllm" in found.remedy
    assert diagnose([], -9) is StartFailure.HOST_MEMORY
    assert diagnose([]) is StartFailure.UNKNOWN  # it has not ended


def test_the_exceptions_of_a_log_are_found_among_its_tracebacks():
    log = [
        "WARNING this can cause errors like `OSError: too many`",
        "(Worker pid=1) ERROR 11-21 RuntimeError: fp8_quant() expected at most 0 arguments",
        "    raise RuntimeError(",
        "torch.OutOfMemoryError: CUDA out of memory",
        "torch.OutOfMemoryError: CUDA out of memory",
    ]
    assert exceptions(log) == [log[1], log[3]]
