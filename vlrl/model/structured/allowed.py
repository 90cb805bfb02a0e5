"""Which tokens the engine could sample at each place of an action that has a form.

The engine's distribution is the model's, restricted to the tokens that a grammar lets follow. The trainer
goes through each action with the same grammar, compiled by the same library, so that its log-probabilities
are those of the distribution that was sampled from.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

from torch import Tensor

from vlrl.config import Config
from vlrl.errors import InternalError
from vlrl.ledger import IntArray
from vlrl.model.structured.forms import structured_of
from vlrl.storage.model_cache import local_model

CACHE_BYTES = 512 * 2**20
"""Of compiled grammars that are kept, as in vLLM; those used longest ago are compiled again."""
EVERY_TOKEN = -1
"""A word of a mask that excludes nothing."""


class AllowedTokens:
    """Follows actions through their grammars, each of which is compiled when it is first needed."""

    def __init__(self, config: Config, stop_token_ids: Sequence[int]) -> None:
        """Take the run's config, and the tokens that end a completion."""
        self._config, self._stop_token_ids = config, stop_token_ids

    def __call__(self, actions: Sequence[IntArray], forms: Sequence[str], places: IntArray) -> Tensor:
        """The tokens that could be sampled in the place of each of M trained ones.

        Args:
            actions: token ids of whole actions.
            forms: of each, see `Turn.form`; "" excludes nothing.
            places: [M, 2] int64: number of an action, and a place in it.

        Returns:
            [M, words] int32, a bit for each token, the lowest of a word first.

        Raises:
            InternalError: if an action has a token that could not be sampled.
        """
        import xgrammar

        compiler, num_tokens, stops = self._vocabulary
        bits = xgrammar.allocate_token_bitmask(len(places), num_tokens)
        asked: dict[int, dict[int, list[int]]] = {}
        for row, (number, place) in enumerate(places.tolist()):
            asked.setdefault(number, {}).setdefault(place, []).append(row)
        grammars = {form: _compile(form, compiler) for form in {forms[number] for number in asked} - {""}}
        for number, rows in asked.items():
            if not forms[number]:
                bits[[row for of_place in rows.values() for row in of_place]] = EVERY_TOKEN
                continue
            matcher = xgrammar.GrammarMatcher(grammars[forms[number]], override_stop_tokens=stops)
            for place, token in enumerate(actions[number][: 1 + max(rows)].tolist()):
                for row in rows.get(place, ()):
                    if matcher.is_terminated():  # as in vLLM: nothing is restricted after the end
                        bits[row] = EVERY_TOKEN
                    else:
                        matcher.fill_next_token_bitmask(bits, row)
                if not matcher.is_terminated() and not matcher.accept_token(token):
                    raise InternalError(
                        f"structured_outputs: token {token}, at place {place} of a completion, could not be "
                        f"sampled by the trainer's grammar of {forms[number][:200]}; report this"
                    )
        return bits

    @cached_property
    def _vocabulary(self) -> tuple[Any, int, list[int]]:
        """(xgrammar's compiler, tokens of the vocabulary, those that end a text), all as vLLM has them."""
        import xgrammar
        from transformers import AutoConfig, AutoTokenizer

        path, remote = local_model(self._config.model.path), self._config.processor.trust_remote_code
        tokenizer = AutoTokenizer.from_pretrained(path, trust_remote_code=remote)
        text = AutoConfig.from_pretrained(path, trust_remote_code=remote).get_text_config()
        info = xgrammar.TokenizerInfo.from_huggingface(tokenizer, vocab_size=text.vocab_size)
        # vLLM counts the tokenizer's own end to those of the request.
        stops = sorted({*self._stop_token_ids, tokenizer.eos_token_id} - {None})
        return xgrammar.GrammarCompiler(info, cache_limit_bytes=CACHE_BYTES), text.vocab_size, stops


def _compile(form: str, compiler: Any) -> Any:
    kind, text = structured_of(form).kind_and_text
    match kind:
        case "json_schema":
            return compiler.compile_json_schema(text, any_whitespace=True)
        case "regex":
            return compiler.compile_regex(text)
        case "grammar":
            return compiler.compile_grammar(text)
        case "structural_tag":
            return compiler.compile_structural_tag(text)
