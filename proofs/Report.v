(** * What is printed for others to compare

    What the theorems rest on, and the list of contexts as the certificates have it: six characters for each, its five
    slots with a dot where there is nothing, and the token that is right. *)

From Coq Require Import Ascii String.
From Adder Require Import Adder.
Open Scope char_scope.

Definition character (t : option token) : ascii :=
  match t with
  | None => "." | Some (Digit d) => ascii_of_nat (48 + value d)
  | Some Minus => "-" | Some Plus => "+" | Some Times => "*" | Some Equals => "=" | Some End => "$"
  end.

Definition line (entry : context * token) : string :=
  let '(c, t) := entry in
  string_of_list_ascii
    (map character [a_here c; b_here c; written_here c; a_next c; b_next c; Some t]).

Print Assumptions adds_all_numbers.
Print Assumptions adds_if_masked.
Print Assumptions visible_is_context.
Print Assumptions columns_are_the_reachable.
Print Assumptions table_is_what_occurs.
Print Assumptions one_answer.
Print Assumptions each_once.
Print Assumptions how_many.

Set Printing Width 8.
Eval vm_compute in map line table.
