package schema

import (
	"context"
	"errors"
	"fmt"
	"os"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	crdvalidation "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	structural "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

// CRD judges the objects of one kind.
type CRD struct {
	definition *apiextensions.CustomResourceDefinition
	schema     *structural.Structural
	values     validation.SchemaValidator
	rules      *cel.Validator
}

// Load reads a generated CRD of one version.
func Load(file string) (*CRD, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read CRD: %w", err)
	}
	external := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.UnmarshalStrict(text, external); err != nil {
		return nil, fmt.Errorf("decode CRD %s: %w", file, err)
	}
	apiextensionsv1.SetDefaults_CustomResourceDefinition(external)
	apiextensionsv1.SetDefaults_CustomResourceDefinitionSpec(&external.Spec)
	definition := &apiextensions.CustomResourceDefinition{}
	if err := apiextensionsv1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(external, definition, nil); err != nil {
		return nil, fmt.Errorf("convert CRD %s: %w", file, err)
	}
	crd := &CRD{definition: definition}
	if err := crd.compile(); err != nil {
		return nil, fmt.Errorf("compile CRD %s: %w", file, err)
	}
	return crd, nil
}

func (c *CRD) compile() error {
	schema, err := apiextensions.GetSchemaForVersion(c.definition, c.definition.Spec.Versions[0].Name)
	if err != nil {
		return err
	}
	if c.schema, err = structural.NewStructural(schema.OpenAPIV3Schema); err != nil {
		return err
	}
	c.rules = cel.NewValidator(c.schema, true, celconfig.PerCallLimit)
	c.values, _, err = validation.NewSchemaValidator(schema.OpenAPIV3Schema)
	return err
}

// Problems says why a server would refuse the CRD itself: a schema that is not
// structural, a CEL rule that does not compile or may cost too much.
func (c *CRD) Problems(ctx context.Context) field.ErrorList {
	created := c.definition.DeepCopy()
	created.Status.StoredVersions = []string{created.Spec.Versions[0].Name}
	return crdvalidation.ValidateCustomResourceDefinition(ctx, created)
}

// Refusals says why a server would refuse to create an object, given as JSON. An
// error is a text that is no JSON object.
func (c *CRD) Refusals(ctx context.Context, text []byte) (field.ErrorList, error) {
	object := map[string]any{}
	doubled, err := json.UnmarshalStrict(text, &object)
	if err != nil {
		return nil, fmt.Errorf("decode object: %w", err)
	}
	delete(object, "status") // a create ignores it
	var errs field.ErrorList
	for _, err := range doubled {
		errs = append(errs, field.Invalid(pathOf(err), nil, err.Error()))
	}
	track := structural.UnknownFieldPathOptions{TrackUnknownFieldPaths: true}
	for _, path := range pruning.PruneWithOptions(object, c.schema, true, track) {
		errs = append(errs, field.Forbidden(field.NewPath(path), "unknown field"))
	}
	defaulting.PruneNonNullableNullsWithoutDefaults(object, c.schema)
	defaulting.Default(object, c.schema)
	return append(errs, c.refusals(ctx, object)...), nil
}

func pathOf(err error) *field.Path {
	var at json.FieldError
	if errors.As(err, &at) {
		return field.NewPath(at.FieldPath())
	}
	return nil
}

func (c *CRD) refusals(ctx context.Context, object map[string]any) field.ErrorList {
	errs := validation.ValidateCustomResource(nil, object, c.values)
	errs = append(errs, listtype.ValidateListSetsAndMaps(nil, c.schema, object)...)
	if blocksRules(errs) {
		return errs
	}
	broken, _ := c.rules.Validate(ctx, nil, c.schema, object, nil, celconfig.RuntimeCELCostBudget)
	return append(errs, broken...)
}

// blocksRules tells that the server would not run CEL rules: they could meet
// values of types that they are not made for.
func blocksRules(errs field.ErrorList) bool {
	for _, err := range errs {
		switch err.Type {
		case field.ErrorTypeNotSupported, field.ErrorTypeRequired, field.ErrorTypeTooLong, field.ErrorTypeTooMany, field.ErrorTypeTypeInvalid:
			return true
		}
	}
	return false
}
