// The tokens of the three texts, for highlighting. The assembler of `reconverge` reads them for real; here nothing is an error.
//
// `tree-sitter generate` makes src/parser.c of it, which `hx --grammar build` compiles.
const name = /[A-Za-z_$][A-Za-z0-9_.$]*/.source;

module.exports = grammar({
  name: "reconverge",
  extras: () => [/\s/],
  rules: {
    text: ($) => repeat(choice($.comment, $.string, $.directive, $.label, $.jump, $.argument, $.number, $.operator, $._value)),
    // A component has no space before it; a directive is never next to a value.
    _value: ($) => seq(choice($.register, $.word, $.closing), repeat($.member)),
    comment: () => token(prec(3, choice(/;[^\n]*/, /\/\/[^\n]*/, /\/\*[^*]*\*\//))),
    string: () => token(prec(2, /"(\\.|[^"\\\n])*"/)),
    member: () => token.immediate(prec(2, /\.[A-Za-z0-9_]+/)),
    directive: () => token(prec(1, /\.[A-Za-z_][A-Za-z0-9_]*/)),
    label: () => token(prec(1, new RegExp(`@?${name}:`))),
    register: () => token(prec(1, /\$[a-z]+[0-9]*[a-z]?/)),
    number: () => token(prec(1, /#?-?(0x[0-9a-fA-F]+|0b[01]+|[0-9]+(\.[0-9]+)?([eE][-+]?[0-9]+)?f?)/)),
    jump: () => token(new RegExp(`@${name}`)),
    argument: () => token(/\\([A-Za-z_][A-Za-z0-9_]*|@)/),
    word: () => token(/[A-Za-z_][A-Za-z0-9_]*/),
    closing: () => token(/[\])|]/),
    operator: () => token(prec(-1, /[^\sA-Za-z0-9_]/)),
  },
});
