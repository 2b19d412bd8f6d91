import math

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pagemill.config.hardware import Device, Dtype, load_profile, profile_names
from pagemill.config.model_cards import Architecture, ModelCard, ModelKind, card_names, load_card
from pagemill.config.serving import Wishes
from pagemill.errors import UsageError
from pagemill.serving.memory import Bounds, Weights, image_tokens, weights_of
from pagemill.serving.planning import ServingPlan, make_plan

GLM = load_card("glm-ocr")
EIGHT_BILLION = Weights(
    stored_bytes=16_400_000_000,
    architecture=Architecture(layers=36, kv_heads=8, head_dim=128, hidden_size=4096, max_position=262_144),
)


def plan_of(profile: str, card: ModelCard = GLM, weights: Weights | None = None, **wishes: object) -> ServingPlan:
    found = load_profile(profile)
    memory = {} if found.memory_gib or "memory_gib" in wishes else {"memory_gib": 32.0}
    return make_plan(card, found, Wishes(**(memory | wishes)), weights)


class TestThePublishedExample:
    """192 GB at 0.90: 172.8 claimed - 1.36 weights - 29.3 activations = 142 of cache = 2,329,040 tokens."""

    plan = plan_of("b200", memory_share=0.90, max_model_len=32_768)

    @pytest.mark.parametrize(
        ("name", "published"),
        [
            ("claimed_gib", 172.8),
            ("weights_gib", 1.36),
            ("activations_gib", 29.3),
            ("kv_gib", 142),
            ("slots", 2_329_040),
            ("worst_case_sequences", 71),
            ("typical_sequences", 776),
        ],
    )
    def test_memory_and_sequences(self, name: str, published: float):
        assert getattr(self.plan.budget, name) == pytest.approx(published, rel=0.005)

    def test_a_token_takes_64_kib(self):
        assert self.plan.budget.kv_bytes_per_token == 64 * 1024

    def test_the_four_bounds(self):
        assert self.plan.bounds == Bounds(
            client=256, max_num_seqs=775, kv_cache=775, batched_tokens=131_072 // 450, published_batched_tokens=65
        )
        assert (self.plan.bounds.effective, self.plan.bounds.limited_by) == (256, "client")


def test_an_l4_computes_about_as_many_at_once_as_was_seen_on_one():
    """The sources saw a mean concurrency of 17 with 64 workers."""
    bounds = plan_of("l4").bounds
    assert bounds.client == 64
    assert (bounds.effective, bounds.limited_by) == (18, "batched_tokens")


@pytest.mark.parametrize("profile", profile_names())
def test_glm_ocr_fits_everywhere_and_every_flag_has_its_reason(profile: str):
    plan = plan_of(profile)
    assert plan.budget.worst_case_sequences >= 1
    assert all(flag.reason for flag in plan.flags)
    assert plan.bounds.effective >= 4
    assert plan.max_image_pixels == GLM.image.max_pixels


def test_what_the_refusal_offers_fits():
    with pytest.raises(UsageError) as caught:
        plan_of("rtx4060", max_model_len=60_000)
    offered = int(str(caught.value.remedy).partition("--max-model-len ")[2].split()[0])
    assert plan_of("rtx4060", max_model_len=offered).budget.worst_case_sequences >= 1
    share = float(str(caught.value.remedy).partition("--gpu-mem-util ")[2].split()[0])
    assert plan_of("rtx4060", max_model_len=60_000, memory_share=share).budget.worst_case_sequences >= 1


def test_a_larger_machine_that_the_refusal_names_suffices():
    with pytest.raises(UsageError, match=r"does not fit on NVIDIA GeForce RTX 4060 8 GB.*weights 8\.4") as caught:
        plan_of("rtx4060", weights=EIGHT_BILLION)
    assert "GiB would do, or a smaller model" in str(caught.value.remedy)
    needed = int(str(caught.value.remedy).partition("with ")[2].split()[0])
    assert plan_of("rtx4060", weights=EIGHT_BILLION, memory_gib=needed).budget.worst_case_sequences >= 1


@pytest.mark.parametrize("profile", ["cpu", "mps"])
def test_fp8_is_refused_where_it_does_not_run(profile: str):
    with pytest.raises(UsageError, match="fp8 does not run on"):
        plan_of(profile, dtype=Dtype.FP8)
    assert "--quantization" not in plan_of(profile).arguments


def test_a_cpu_gets_a_cache_of_its_own_size_instead_of_a_share_of_the_machine():
    arguments = plan_of("cpu", memory_gib=512).arguments
    assert "--gpu-memory-utilization" not in arguments
    assert int(arguments[arguments.index("--kv-cache-memory-bytes") + 1]) == 4 * 16_384 * 65_536


def test_a_checkpoint_in_fp8_is_refused_where_fp8_does_not_run():
    with pytest.raises(UsageError, match="fp8 does not run on CPU only") as caught:
        plan_of("cpu", card=load_card("qwen3-vl-embedding-2b-fp8"))
    assert "16-bit" in str(caught.value.remedy)


def test_a_prefill_that_is_asked_for_is_the_only_one():
    assert plan_of("b200", prefill_tokens=1000).bounds.published_batched_tokens is None


@pytest.mark.parametrize(
    ("dtype", "flags"),
    [(Dtype.FP8, ["--quantization", "fp8"]), (Dtype.BF16, ["--dtype", "bfloat16"]), (Dtype.AUTO, [])],
)
def test_how_weights_are_held_becomes_a_flag(dtype: Dtype, flags: list[str]):
    given = plan_of("h100", dtype=dtype).arguments
    assert [word for word in given if word in {"--quantization", "fp8", "--dtype", "bfloat16"}] == flags


def test_a_checkpoint_in_fp8_is_neither_quantised_again_nor_counted_as_half():
    assert GLM.architecture is not None
    stored = Weights(stored_bytes=2**31, architecture=msgspec.structs.replace(GLM.architecture, stored_bits=8))
    plan = plan_of("h100", weights=stored, dtype=Dtype.FP8)
    assert "--quantization" not in plan.arguments
    assert plan.budget.weights_gib == 2


def test_a_card_without_numbers_is_refused():
    with pytest.raises(UsageError, match="has no numbers"):
        weights_of(msgspec.structs.replace(GLM, architecture=None))


def test_requests_longer_than_the_model_reads_are_refused():
    with pytest.raises(UsageError, match="reads at most 131,072 tokens"):
        plan_of("b200", max_model_len=200_000)


def test_the_longest_request_of_a_card_is_cut_to_what_the_weights_read():
    assert GLM.architecture is not None
    short = Weights(stored_bytes=10**8, architecture=msgspec.structs.replace(GLM.architecture, max_position=2048))
    assert plan_of("l4", weights=short).budget.max_model_len == 2048


@pytest.mark.parametrize(
    ("name", "wrong"), [("memory_share", (0, -0.1, 1.01, math.nan)), ("memory_gib", (0.0, -1.0, math.inf, math.nan))]
)
def test_a_memory_that_is_none_is_refused(name: str, wrong: tuple[float, ...]):
    for each in wrong:
        with pytest.raises(UsageError, match=f"{name} is"):
            Wishes(**{name: each})


def test_a_server_has_room_for_the_longest_answer_beside_the_largest_image():
    plan = plan_of("b200", max_tokens=16_384)
    assert plan.budget.max_model_len == 22_784  # 6,144 + 50 + 16,384 = 22,578, rounded up
    assert "an answer of 16,384 tokens" in next(each.reason for each in plan.flags if each.name == "--max-model-len")
    assert plan_of("b200", max_tokens=100).budget.max_model_len == GLM.server.max_model_len
    assert plan_of("b200", max_tokens=16_384, max_model_len=32_768).budget.max_model_len == 32_768


@pytest.mark.parametrize("wishes", [{"max_tokens": 131_000}, {"max_tokens": 8192, "max_model_len": 8192}])
def test_an_answer_that_no_request_has_room_for_is_refused(wishes):
    with pytest.raises(UsageError) as caught:
        plan_of("b200", **wishes)
    assert "ower --max-tokens" in str(caught.value.remedy)


def test_an_unknown_memory_is_asked_for():
    with pytest.raises(UsageError, match="is not known"):
        make_plan(GLM, load_profile("cpu"))


def test_a_small_encoder_cache_bounds_the_image():
    profile = msgspec.structs.replace(load_profile("l4"), max_num_batched_tokens=2048)
    plan = make_plan(GLM, profile)
    assert plan.encoder_cache_tokens == 4800
    assert plan.max_image_pixels == 4800 * 28 * 28


def test_an_embedding_model_is_sized_for_whole_pages():
    card = load_card("qwen3-vl-embedding-2b")
    assert plan_of("l4", card=card).workload.prefill_tokens == 1_843_200 // 32**2 + 50


def test_an_embedding_model_gets_no_limit_of_its_own():
    card = msgspec.structs.replace(GLM, kind=ModelKind.EMBEDDING)
    assert "--limit-mm-per-prompt" not in plan_of("l4", card=card).arguments


def test_little_memory_beside_the_server_is_reported():
    assert any("outside vLLM" in note for note in plan_of("rtx4060", memory_share=0.95).notes)
    assert not any("outside vLLM" in note for note in plan_of("l4").notes)


def test_units():
    assert plan_of("h100", weights=EIGHT_BILLION).budget.kv_bytes_per_token == 36 * 2 * 8 * 128 * 2
    assert image_tokens(812 * 422, 28) == 438


@given(
    profile=st.sampled_from([name for name in profile_names() if load_profile(name).device is Device.CUDA]),
    memory=st.floats(1, 300),
    share=st.floats(0.05, 1),
    length=st.integers(64, 131_072),
    sequence=st.integers(1, 40_000),
    prefill=st.integers(1, 20_000),
)
def test_a_plan_holds_together_or_is_refused(
    profile: str, memory: float, share: float, length: int, sequence: int, prefill: int
):
    wishes = Wishes(
        memory_gib=memory, memory_share=share, max_model_len=length, sequence_tokens=sequence, prefill_tokens=prefill
    )
    try:
        plan = make_plan(GLM, load_profile(profile), wishes)
    except UsageError as error:
        assert "does not fit" in error.message or "nothing is left" in error.message
        return
    budget = plan.budget
    spent = budget.weights_gib + budget.activations_gib + budget.kv_gib + budget.left_gib
    assert spent == pytest.approx(memory)
    assert budget.slots >= length
    assert 1 <= plan.bounds.effective <= plan.bounds.max_num_seqs


def test_a_length_that_leaves_no_room_for_an_answer_is_refused():
    with pytest.raises(UsageError, match="nothing is left for an answer"):
        make_plan(load_card("glm-ocr"), load_profile("l4"), Wishes(max_model_len=450))


def value(plan: ServingPlan, flag: str) -> str | None:
    return next(each.value for each in plan.flags if each.name == flag)


def test_limits_that_are_asked_for_are_used_as_they_are():
    plan = plan_of("l4", max_num_seqs=2000, max_num_batched_tokens=16_384)
    assert plan.bounds.kv_cache < 2000, "the cache holds fewer"
    assert (value(plan, "--max-num-seqs"), value(plan, "--max-num-batched-tokens")) == ("2000", "16384")
    assert [each.reason for each in plan.flags if "max-num" in each.name] == ["asked for", "asked for"]
    assert plan.bounds.batched_tokens == 16_384 // 450


def test_a_measured_profile_gives_the_flags_that_were_measured():
    found = msgspec.structs.replace(load_profile("l4"), max_num_seqs=2000, max_model_len=8192, measured=True)
    plan = make_plan(GLM, found)
    assert (value(plan, "--max-num-seqs"), value(plan, "--max-model-len")) == ("2000", "8192")
    assert value(make_plan(GLM, found, Wishes(max_model_len=4096)), "--max-model-len") == "4096"
    embedding = load_card("qwen3-vl-embedding-2b")
    assert value(make_plan(embedding, found), "--max-model-len") == str(embedding.server.max_model_len)


def test_vectors_are_made_with_weights_as_they_were_published():
    card = load_card("qwen3-vl-embedding-2b")
    assert "--quantization" not in plan_of("l4", card=card).arguments
    assert "--quantization" in plan_of("l4", card=card, dtype=Dtype.FP8).arguments


def test_an_embedding_model_that_does_not_fit_takes_shorter_texts():
    card = load_card("qwen3-vl-embedding-2b-fp8")
    plan = plan_of("rtx4060", card=card)
    assert value(plan, "--max-model-len") == "4096"
    assert "longer texts are cut" in next(each.reason for each in plan.flags if each.name == "--max-model-len")
    with pytest.raises(UsageError, match="does not fit"):
        plan_of("rtx4060", card=card, max_model_len=8192)


@pytest.mark.parametrize("name", [name for name in card_names() if load_card(name).server.args])
def test_the_flags_of_the_card_are_in_the_plan_once(name: str):
    card = load_card(name)
    arguments = plan_of("b200", card=card).arguments
    own = list(card.server.args)
    assert arguments[-len(own) :] == own
    assert all(arguments.count(word) == 1 for word in arguments if word.startswith("--"))
