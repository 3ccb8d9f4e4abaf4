// The tokens of the three texts, for highlighting. The assembler of `reconverge` reads them for real; here nothing is an error.
//
// `tree-sitter generate` makes src/parser.c of it, which `hx --grammar build` compiles.
const name = /[A-Za-z_$][A-Za-z0-9_.$]*/.source;

module.exports = grammar({
  name: "reconverge",
  extras: () => [/\s/],
  rules: {
    text: ($) =>
      repeat(
        choice(
          $.comment, $.string, $.directive, $.label, $.jump, $.argument, $.register, $.number, $.word, $.member, $.operator,
        ),
      ),
    comment: () => token(prec(3, choice(/;[^\n]*/, /\/\/[^\n]*/, /\/\*[^*]*\*\//))),
    string: () => token(prec(2, /"(\\.|[^"\\\n])*"/)),
    directive: () => token(prec(1, /\.[A-Za-z_][A-Za-z0-9_]*/)),
    // Next to a register: its components.
    member: () => token.immediate(prec(2, /\.[A-Za-z0-9_]+/)),
    label: () => token(prec(1, new RegExp(`@?${name}:`))),
    jump: () => token(new RegExp(`@${name}`)),
    argument: () => token(/\\([A-Za-z_][A-Za-z0-9_]*|@)/),
    register: () => token(prec(1, /\$[a-z]+[0-9]*[a-z]?/)),
    number: () => token(prec(1, /#?-?(0x[0-9a-fA-F]+|0b[01]+|[0-9]+(\.[0-9]+)?([eE][-+]?[0-9]+)?f?)/)),
    word: () => token(/[A-Za-z_][A-Za-z0-9_]*/),
    operator: () => token(prec(-1, /[^\sA-Za-z0-9_]/)),
  },
});
